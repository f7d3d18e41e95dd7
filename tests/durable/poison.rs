//! Input no engine should have to see: it is refused at the door or quarantined by name, and the neighbours do not
//! notice.

use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::{EngineError, RunState, Settings, StartError};
use serde_json::json;
use uuid::Uuid;

use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

/// Fifty healthy runs succeed, whatever else is in the database.
pub(super) async fn neighbours_succeed(story: &Story) {
    let runs = futures::future::join_all(
        (0..50).map(|_| story.start([touch("a"), hold("b"), Do::Write("c".into())])),
    )
    .await;
    for run in runs {
        assert_eq!(
            story.ends(run).await,
            RunState::Succeeded,
            "a neighbour suffers: {}",
            story.describe(run).await
        );
    }
}

pub(super) async fn quarantined(story: &Story, run: Uuid, cause: &str) {
    assert_eq!(story.settles(run).await, RunState::Paused, "{}", story.describe(run).await);
    assert_eq!(story.cause(run).await.as_deref(), Some(cause), "{}", story.describe(run).await);
}

/// The same on its way back.
pub(super) async fn sticks(story: &Story, run: Uuid, cause: &str) {
    assert_eq!(story.settles(run).await, RunState::Stuck, "{}", story.describe(run).await);
    assert_eq!(story.cause(run).await.as_deref(), Some(cause), "{}", story.describe(run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_cannot_hold_is_refused_at_the_door() {
    let story = Story::new().await;
    let refused = |does: Vec<Do>| async { story.start_as(does, start()).await };
    let nul = refused(vec![touch("a\0b")]).await;
    assert!(matches!(nul, Err(StartError::Engine(EngineError::Payload { .. }))), "{nul:?}");
    let large = refused(vec![touch(&"x".repeat(10 << 20))]).await;
    assert!(matches!(large, Err(StartError::Engine(EngineError::Payload { .. }))), "{large:?}");
    let deep = (0..100).fold(touch("a"), |inner, _| Do::Child(vec![inner]));
    let deep = refused(vec![deep]).await;
    assert!(matches!(deep, Err(StartError::Engine(EngineError::Payload { .. }))), "{deep:?}");
    let run = story.start([Do::Wait(HOUR)]).await;
    let mut conn = story.pool.acquire().await.unwrap();
    for payload in [json!("a\0b"), json!("x".repeat(1 << 20))] {
        let sent = story.engine.signal(&mut conn, run, "word", "1", &payload).await;
        assert!(matches!(sent, Err(EngineError::Payload { .. })), "{sent:?}");
    }
    drop(conn);
    story.signal(run, "word", "1", json!("fine")).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    neighbours_succeed(&story).await;
    story.end().await;
}

/// A run row as some other writer might leave it: due at once.
async fn plant(story: &Story, kind: &str, version: i32, input: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into engine.run (id, kind, version, project_id, correlation_id, input, wake_at)
         values ($1, $2, $3, $4, 'c-planted', $5::jsonb, engine.now())",
    )
    .bind(id)
    .bind(kind)
    .bind(version)
    .bind(Uuid::from_u128(1))
    .bind(input)
    .execute(&story.pool)
    .await
    .unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_nobody_knows_waits_with_its_cause() {
    let story = Story::new().await;
    for (kind, version) in [("test.script", 99), ("test.unheard_of", 1)] {
        let run = plant(&story, kind, version, r#"{"does": []}"#).await;
        story
            .until_true(
                "the run says that nobody knows its version",
                "select exists (select 1 from engine.run_cause where run_id = $1 and code = 'unknown_version') and $2::text[] is not null",
                run,
                &[],
            )
            .await;
    }
    neighbours_succeed(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_does_not_fit_its_workflow_is_quarantined() {
    let story = Story::new().await;
    let deep = format!("{{\"does\": {}1{}}}", "[".repeat(2_000), "]".repeat(2_000));
    let long = format!("{{\"does\": [{:?}]}}", "x".repeat(50_000));
    for input in [r#"{"does": 7}"#, "null", r#"{"does": [{"Unheard": 1}]}"#, &deep, &long] {
        let run = plant(&story, "test.script", 1, input).await;
        quarantined(&story, run, "crash_loop").await;
    }
    neighbours_succeed(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_does_not_fit_its_code_is_quarantined_as_such() {
    let story = Story::new().await;
    // Another input for a step that was done, an output that is no text, and one whose complaint is longer than a page.
    let answered =
        "insert into engine.journal (run_id, seq, epoch, token, at, progress, correlation_id, events)
         select run_id, max(seq) + 1, max(epoch), gen_random_uuid(), engine.now(), true, min(correlation_id),
                json_build_array(json_build_object('e', 'settle', 'state', 'failed', ";
    for change in [
        r#"update engine.journal set events = regexp_replace(events::text, '"hash":"[0-9a-f]+"', '"hash":"00"')::json
           where run_id = $1 and seq = 0"#,
        &format!(
            "{answered} 'name', 'touch', 'key', 'a', 'output', json_build_array(1))) from engine.journal where run_id = $1 group by run_id"
        ),
        &format!(
            "{answered} 'name', 'test.child', 'key', '', 'output', json_build_object('state', repeat('x', 20000)))) from engine.journal where run_id = $1 group by run_id"
        ),
    ] {
        let run = story.start([touch("a"), Do::Child(vec![touch("in")]), Do::Wait(HOUR)]).await;
        story
            .until_true(
                "the run waits for its signal",
                "select cause = 'waiting_signal' and owner is null and $2::text[] is not null from engine.run where id = $1",
                run,
                &[],
            )
            .await;
        let changed = sqlx::query(sqlx::AssertSqlSafe(change)).bind(run).execute(&story.pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1);
        story.signal(run, "word", "1", json!(1)).await;
        quarantined(&story, run, "nondeterministic").await;
    }
    neighbours_succeed(&story).await;
    story.end().await;
}

const WAITS: &str = "select cause = 'waiting_signal' and owner is null and $2::text[] is not null
    from engine.run where id = $1";
const IS_UNKNOWN: &str = "select exists (select 1 from engine.run_cause
    where run_id = $1 and code = 'unknown_version') and $2::text[] is not null";

async fn rewrite_journal(story: &Story, run: Uuid, from: &str, to: &str) {
    let changed = sqlx::query(
        "update engine.journal set events = replace(events::text, $2, $3)::json where run_id = $1 and seq = 0",
    )
    .bind(run)
    .bind(from)
    .bind(to)
    .execute(&story.pool)
    .await
    .unwrap();
    assert_eq!(changed.rows_affected(), 1);
}

/// As a release writes it that knows more words than this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_in_words_that_nobody_here_knows_waits_for_somebody_who_does() {
    let story = Story::new().await;
    let run = story.start([touch("a"), Do::Wait(HOUR), touch("b")]).await;
    story.until_true("the run waits for its signal", WAITS, run, &[]).await;
    rewrite_journal(&story, run, r#""e":"intend""#, r#""e":"foresee""#).await;
    story.signal(run, "word", "1", json!(1)).await;
    story.until_true("the run says that nobody can read it", IS_UNKNOWN, run, &[]).await;
    neighbours_succeed(&story).await;
    rewrite_journal(&story, run, r#""e":"foresee""#, r#""e":"intend""#).await;
    story.advance(Duration::from_secs(64)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

/// A release that no longer has a step cannot undo it either.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_the_code_no_longer_reaches_is_not_forgotten_when_the_run_turns_back() {
    let story = Story::new().await;
    let run = story.start([hold("a"), Do::Wait(HOUR)]).await;
    story.until_true("the run waits for its signal", WAITS, run, &[]).await;
    let input = "update engine.run set input = replace(input::text, $2, $3)::jsonb where id = $1";
    let write = |from: &'static str, to: &'static str| {
        sqlx::query(input).bind(run).bind(from).bind(to).execute(&story.pool)
    };
    let held = "{\"Hold\": \"a\"}, ";
    assert_eq!(write(held, "").await.unwrap().rows_affected(), 1);
    story.ask("cancel", run).await.unwrap();
    sticks(&story, run, "nondeterministic").await;
    let detail: serde_json::Value = sqlx::query_scalar("select cause_detail from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(detail["remaining"], json!(["hold/a"]), "{detail}");
    neighbours_succeed(&story).await;
    write("[{\"Wait\"", "[{\"Hold\": \"a\"}, {\"Wait\"").await.unwrap();
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_the_code_no_longer_reaches_is_not_forgotten_at_the_end() {
    let story = Story::new().await;
    let run = story.start([touch("a"), Do::Wait(HOUR)]).await;
    story.until_true("the run waits for its signal", WAITS, run, &[]).await;
    let write = |input: &'static str| {
        let set = sqlx::query("update engine.run set input = $2::jsonb where id = $1");
        set.bind(run).bind(input).execute(&story.pool)
    };
    write(r#"{"does": [{"Touch": "a"}]}"#).await.unwrap();
    story.signal(run, "word", "1", json!(1)).await;
    quarantined(&story, run, "nondeterministic").await;
    let told = story.describe(run).await;
    assert!(told.contains(r#""unfinished": ["word"]"#), "{told}");
    write(r#"{"does": [{"Touch": "a"}, {"Wait": 3600000}]}"#).await.unwrap();
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_names_no_run_harms_nobody_and_goes() {
    let mut story = Story::idle(quick(), None).await;
    for (n, payload) in
        [&b"not a run"[..], b"\xff\xfe\xfd", b"", b"00000000-0000-0000-0000-000000000001"].iter().enumerate()
    {
        sqlx::query("insert into apalis.jobs (id, job_type, job, run_at) values ($1, 'drive', $2, now())")
            .bind(format!("01ARZ3NDEKTSV4RRFFQ69G5FA{n}"))
            .bind(*payload)
            .execute(&story.pool)
            .await
            .unwrap();
    }
    story.work();
    neighbours_succeed(&story).await;
    story
        .until_true(
            "the jobs are gone",
            "select not exists (select 1 from apalis.jobs) and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_characters_in_a_steps_key_are_just_characters() {
    let story = Story::with(Settings { inline_retry: Duration::ZERO, ..quick() }, None).await;
    for key in ["quote\"", "back\\slash", "new\nline", "e\u{301}", "zero\u{200d}width", "\u{7f}", "emoji🦀"]
    {
        story.world.trouble(key, [Trouble::Retry]);
        let run = story.start([touch(key)]).await;
        assert_eq!(story.settles(run).await, RunState::Succeeded, "{key:?}: {}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_database_refuses_fails_alone() {
    let story = Story::new().await;
    sqlx::raw_sql(
        "alter table engine.journal add constraint picky check (events::text not like '%refuse me%')",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    // All at once, so that some share a transaction, however often that is split.
    for _ in 0..20 {
        let key = |n: usize| if n % 20 == 7 { "refuse me" } else { "fine" };
        let started = (0..60).map(|n| story.start([Do::Sleep(1), touch(key(n)), hold("b")]));
        for (n, run) in futures::future::join_all(started).await.into_iter().enumerate() {
            let expected = if n % 20 == 7 { RunState::Paused } else { RunState::Succeeded };
            assert_eq!(story.settles(run).await, expected, "{}", story.describe(run).await);
        }
        if story.engine.stats().splits.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    assert!(story.engine.stats().splits.load(Ordering::Relaxed) > 0, "no batch was ever split");
    sqlx::raw_sql("alter table engine.journal drop constraint picky").execute(&story.pool).await.unwrap();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_of_no_return_that_the_database_refuses_is_none() {
    let story = Story::new().await;
    let refuse =
        "alter table engine.journal add constraint picky check (events::text not like '%refuse me%')";
    sqlx::raw_sql(refuse).execute(&story.pool).await.unwrap();
    let run = story.start([hold("a"), Do::Pivot, touch("refuse me")]).await;
    quarantined(&story, run, "crash_loop").await;
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
    story.gave_everything_back(run).await;
    sqlx::raw_sql("alter table engine.journal drop constraint picky").execute(&story.pool).await.unwrap();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_process_that_knows_a_run_leaves_no_trace_in_its_journal() {
    let story = Story::new().await;
    let run = story.start([Do::Wait(HOUR), touch("after")]).await;
    story.until(run, &[RunState::Waiting]).await;
    let rows = async || -> i64 {
        let rows = sqlx::query_scalar("select count(*) from engine.journal where run_id = $1").bind(run);
        rows.fetch_one(&story.pool).await.unwrap()
    };
    let become_version = async |version: i32| {
        let changed = sqlx::query("update engine.run set version = $2 where id = $1").bind(run).bind(version);
        changed.execute(&story.pool).await.unwrap();
    };
    become_version(99).await;
    let before = rows().await;
    story.signal(run, "word", "1", json!("go")).await;
    for looks in 1..=8 {
        story.advance(Duration::from_secs(70)).await;
        story
            .until_true(
                "somebody looked again",
                "select epoch > $2[1]::bigint and owner is null from engine.run where id = $1",
                run,
                &[&looks.to_string()],
            )
            .await;
    }
    assert_eq!(rows().await, before);
    become_version(1).await;
    story.advance(Duration::from_secs(70)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}
