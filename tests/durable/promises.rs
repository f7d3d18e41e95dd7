//! The checker of the engine's promises can fail: each is broken once, in a transaction that does not last. The platform
//! checks all of history each night: a night on which they hold succeeds, and one on which they do not says what is broken.
//! In between, every run has its turn.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use activities::Env;
use chrono::{DateTime, TimeDelta, Utc};
use engine::{Look, RunState, Settings, Violation, Workers};
use futures::future::BoxFuture;
use sqlx::PgConnection;
use uuid::Uuid;
use workflows::demo::Tour;

use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, hold, touch};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The platform's own workflows and schedules in place of the scripted ones.
async fn platform() -> (Story, Workers) {
    let story = Story::idle(quick(), None).await;
    workflows::declare_schedules(&story.engine).await.unwrap();
    let env = Arc::new(Env::new(story.engine.clone()));
    story.engine.also_promises(activities::promises::of_the_platform);
    let workers = Workers::start(&story.engine, env, workflows::registry());
    (story, workers)
}

/// A finished run, long enough ago that the check of the last minute does not look at it any more.
async fn old_run(story: &Story) -> Uuid {
    let tour = Tour { thing: "lamp".into(), busy_tries: 0, wait_seconds: 0, fits: true };
    let mut tx = story.pool.begin().await.unwrap();
    let mut started = story.engine.start(&mut tx, &tour, start()).await.unwrap();
    tx.commit().await.unwrap();
    started.begin();
    assert_eq!(story.ends(started.id).await, RunState::Succeeded);
    story.advance(HOUR).await;
    started.id
}

/// Lets a day pass; what became of the check it brought, and what that said.
async fn next_night(story: &Story) -> (RunState, String) {
    let last =
        "select coalesce(last_run_id, gen_random_uuid()) from engine.schedule where name = 'check_promises'";
    let before: Uuid = sqlx::query_scalar(last).fetch_one(&story.pool).await.unwrap();
    story.advance(DAY).await;
    let fired = "select last_run_id <> $1 and $2::text[] is not null from engine.schedule where name = 'check_promises'";
    story.until_true("the night's check began", fired, before, &[]).await;
    let check: Uuid = sqlx::query_scalar(last).fetch_one(&story.pool).await.unwrap();
    let state = story.ends(check).await;
    let said = sqlx::query_scalar("select coalesce(error::text, '') from engine.run where id = $1")
        .bind(check)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    (state, said)
}

/// Writes past the triggers, as only a superuser or a fault could.
async fn tamper(story: &Story, run: Uuid, holds_target: bool) {
    let mut tx = story.pool.begin().await.unwrap();
    sqlx::raw_sql("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
    let changed = sqlx::query("update engine.run set holds_target = $2 where id = $1")
        .bind(run)
        .bind(holds_target)
        .execute(&mut *tx)
        .await
        .unwrap();
    assert_eq!(changed.rows_affected(), 1);
    tx.commit().await.unwrap();
}

fn counted(story: &Story) -> u64 {
    story.engine.stats().promises_broken.load(Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_on_which_every_promise_holds_succeeds() {
    let (story, workers) = platform().await;
    old_run(&story).await;
    for _ in 0..2 {
        assert_eq!(next_night(&story).await, (RunState::Succeeded, String::new()));
    }
    assert_eq!(counted(&story), 0);
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_broken_long_ago_fails_the_night_until_it_is_mended() {
    let (story, workers) = platform().await;
    let run = old_run(&story).await;
    tamper(&story, run, true).await;
    let (state, said) = next_night(&story).await;
    assert_eq!(state, RunState::Failed);
    assert!(said.contains("promises_broken"), "{said}");
    assert!(said.contains(&format!("1 broken: P6: run {run} is succeeded but not at rest")), "{said}");
    assert!(counted(&story) > 0, "it is counted");

    tamper(&story, run, false).await;
    assert_eq!(
        next_night(&story).await,
        (RunState::Succeeded, String::new()),
        "and the next night looks again"
    );
    workers.stop().await;
    story.end().await;
}

/// What a superuser or a fault could do, by the promise it breaks and the run it is found at.
fn breaches(
    done: Uuid,
    undone: Uuid,
    waits: Uuid,
    parent: Uuid,
) -> Vec<(&'static str, Option<Uuid>, String)> {
    let write = |run: Uuid, events: &str| {
        format!(
            "insert into engine.journal (run_id, seq, epoch, token, at, progress, correlation_id, events)
             select run_id, max(seq) + 1, max(epoch), gen_random_uuid(), max(at), true, min(correlation_id), '{events}'
             from engine.journal where run_id = '{run}' group by run_id"
        )
    };
    let run = |run: Uuid, change: &str| format!("update engine.run set {change} where id = '{run}'");
    let journal = |run: Uuid, rest: &str| format!("update engine.journal set {rest} and run_id = '{run}'");
    let again =
        r#"[{"e": "settle", "name": "touch", "key": "a", "state": "succeeded", "attempt": 2, "output": 1}]"#;
    let redone = r#"[{"e": "tried", "name": "hold", "key": "x", "undo": false, "attempt": 2, "outcome": "succeeded",
        "started_at": "2100-01-01T00:00:00Z", "at": "2100-01-01T00:00:00Z"}]"#;
    let begun = r#"[{"e": "intend", "name": "touch", "key": "late", "pos": %, "op": "activity", "state": "running",
        "hash": "00", "started_at": "2100-01-01T00:00:00Z"}]"#;
    vec![
        (
            "P1",
            Some(done.min(undone)),
            format!(
                "drop index engine.run_start_key; update engine.run set start_key = 'twice' where id in ('{done}', '{undone}')"
            ),
        ),
        ("P1", None, "drop index engine.run_start_key".into()),
        ("P1", Some(parent), format!("delete from engine.run where parent_id = '{parent}'")),
        (
            "P1",
            Some(done),
            format!(
                "insert into engine.tick (schedule, nominal, run_id, outcome) values ('x', engine.now(), '{done}', 'fired');
                 delete from engine.run where id = '{done}'"
            ),
        ),
        ("P2", Some(waits), run(waits, "owner = gen_random_uuid()")),
        ("P2", Some(done), journal(done, "epoch = 0 where seq = 1")),
        ("P2", Some(done), run(done, "epoch = 0")),
        ("P3", Some(done), write(done, again)),
        ("P3", Some(done), journal(done, "events = replace(events::text, '\"output\"', '\"lost\"')::json where true")),
        ("P4", Some(undone), write(undone, redone)),
        ("P5", Some(waits), run(waits, "cause = null, wake_at = null")),
        ("P5", Some(waits), run(waits, "cause = 'boredom'")),
        ("P5", Some(done), write(done, &begun.replace('%', "9"))),
        ("P6", None, "alter table engine.run disable trigger run_terminal_is_final".into()),
        ("P6", Some(done), run(done, "state = 'running'")),
        ("P6", Some(done), journal(done, "at = at + interval '1 hour' where true")),
        ("P7", Some(undone), run(undone, "unwinding = false")),
        ("P7", Some(undone), write(undone, &begun.replace('%', "0"))),
        ("P7", Some(undone), write(undone, &begun.replace('%', "9"))),
        ("P7", Some(waits), write(waits, &begun.replace('%', "2"))),
        (
            "P7",
            Some(undone),
            journal(
                undone,
                "events = regexp_replace(events::text, '(\"finished_at\"):\"[^\"]*\"', '\\1:\"2020-01-01T00:00:00Z\"')::json
                 where events::text like '%\"key\":\"x\",\"state\":\"compensated\"%'",
            ),
        ),
        (
            "P8",
            Some(undone),
            format!(
                "delete from engine.journal where run_id = '{undone}'
                 and events::text like '%\"key\":\"x\",\"state\":\"compensated\"%'"
            ),
        ),
        ("P9", Some(done), journal(done, "correlation_id = 'another' where seq = 1")),
        ("P9", Some(done), format!("delete from engine.journal where run_id = '{done}' and seq = 1")),
        ("P9", Some(done), run(done, "correlation_id = repeat('x', 129)")),
        ("P10", Some(waits), run(waits, "state = 'paused', cause = 'paused_by_operator'")),
        ("P10", Some(undone), run(undone, "state = 'cancelled'")),
        (
            "P10",
            Some(waits),
            format!(
                "insert into engine.act (id, run_id, act, actor, correlation_id)
                 values (gen_random_uuid(), '{waits}', 'resume', '', 'c')"
            ),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_promise_of_the_engine_can_be_found_broken() {
    let mut story = Story::new().await;
    let done = story.start([touch("a"), hold("b"), Do::Write("c".into())]).await;
    let undone = story.start([hold("x"), hold("y"), Do::Fail]).await;
    let waits = story.start([touch("a"), Do::Wait(3_600_000)]).await;
    let parent = story.start([Do::Child(vec![Do::Wait(3_600_000)])]).await;
    assert_eq!(story.ends(done).await, RunState::Succeeded);
    assert_eq!(story.ends(undone).await, RunState::Compensated);
    story.until(waits, &[RunState::Waiting]).await;
    story.until(parent, &[RunState::Waiting]).await;
    story.quiet().await;
    story.rest().await;
    story.check().await;
    for (promise, run, broken_by) in breaches(done, undone, waits, parent) {
        let mut tx = story.pool.begin().await.unwrap();
        sqlx::raw_sql("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(broken_by.clone())).execute(&mut *tx).await.unwrap();
        let found = engine::check_invariants(&mut tx).await.unwrap();
        assert!(
            found.iter().any(|one| one.promise == promise && one.run_id == run),
            "{promise} {broken_by}: {found:#?}"
        );
        tx.rollback().await.unwrap();
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_broken_long_ago_is_found_without_waiting_for_the_night() {
    let story = Story::idle(quick(), None).await;
    let workers =
        Workers::start(&story.engine, Arc::new(Env::new(story.engine.clone())), workflows::registry());
    let run = old_run(&story).await;
    assert_eq!(counted(&story), 0);
    // It ended long before whatever changed since any look, and went on after that.
    move_end(&story, run, -10).await;
    let found = async {
        while counted(&story) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.expect("its turn comes");
    move_end(&story, run, 10).await;
    workers.stop().await;
    story.end().await;
}

async fn move_end(story: &Story, run: Uuid, days: i32) {
    let mut tx = story.pool.begin().await.unwrap();
    sqlx::raw_sql("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
    sqlx::query("update engine.run set finished_at = finished_at + make_interval(days => $2) where id = $1")
        .bind(run)
        .bind(days)
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// From when on each look in between looked.
static LOOKED_SINCE: Mutex<Vec<DateTime<Utc>>> = Mutex::new(Vec::new());

fn looks() -> usize {
    LOOKED_SINCE.lock().unwrap().len()
}

/// The second look meets a database that takes too long.
fn slow_at_the_second<'c>(
    conn: &'c mut PgConnection,
    look: Option<Look>,
) -> BoxFuture<'c, sqlx::Result<Vec<Violation>>> {
    Box::pin(async move {
        let Some(look) = look else { return Ok(Vec::new()) };
        LOOKED_SINCE.lock().unwrap().push(look.since);
        if looks() == 2 {
            sqlx::query("select pg_sleep(60)").execute(conn).await?;
        }
        Ok(Vec::new())
    })
}

/// What was too much for one look would be more for the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_took_too_long_is_not_made_up_for() {
    let settings = Settings { reap_every: Duration::from_millis(5), ..quick() };
    let mut story = Story::idle(settings, None).await;
    story.engine.also_promises(slow_at_the_second);
    story.work();
    for count in 1..=3 {
        while looks() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        story.advance(HOUR).await;
    }
    let since = LOOKED_SINCE.lock().unwrap().clone();
    assert!(since[2] - since[1] > TimeDelta::minutes(30), "the third does not begin where the second did");
    story.end().await;
}
