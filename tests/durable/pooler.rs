//! The basic stories through a transaction pooler, where nothing may rest on a session.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::{Engine, Missed, Overlap, RunState, Schedule, Settings, Workers};
use serde_json::json;

use crate::support::database::TestDatabase;
use crate::support::outsider::{Blow, Orders, Outsider, short_lease};
use crate::support::pooler::Pooler;
use crate::support::story::{Story, quick, registry};
use crate::support::world::{Do, Script, Trouble, World, hold, touch};

const HOUR: u64 = 3_600_000;

/// The engine reaches Postgres through the pooler; the story and the world look on directly.
async fn pooled() -> (Story, Pooler) {
    pooled_with(quick()).await
}

async fn pooled_with(settings: Settings) -> (Story, Pooler) {
    let (mut story, pooler) = pooled_idle(settings).await;
    story.work();
    (story, pooler)
}

async fn pooled_idle(settings: Settings) -> (Story, Pooler) {
    let mut database = TestDatabase::new().await;
    let (pooler, direct) = (Pooler::before(&database), database.pool());
    database.options = database.options.host("127.0.0.1").port(pooler.port).application_name("driven");
    let mut story = Story::on(database, Settings { pooler: true, ..settings }, None);
    let world = Arc::new(World::new(direct.clone()));
    (story.pool, story.world) = (direct, world);
    (story, pooler)
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_a_workflow_does_works_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    let mut runs = Vec::new();
    for n in 0..30 {
        let child = Do::Child(vec![touch("in"), Do::Write("within".into())]);
        let mut does = vec![
            touch("a"),
            hold("b"),
            Do::Write("c".into()),
            Do::Sleep(5),
            Do::Wait(HOUR),
            child,
            hold("d"),
        ];
        if n % 3 == 0 {
            does.push(Do::Fail);
        }
        runs.push((story.start(does).await, n % 3 == 0));
    }
    for (run, fails) in runs {
        story.signal(run, "word", "1", json!("go")).await;
        let expected = if fails { RunState::Compensated } else { RunState::Succeeded };
        assert_eq!(story.ends(run).await, expected, "{}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_heard_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    story.world.trouble("slow", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("slow")]).await;
    story.until_step(run, "slow", "running").await;
    story.ask("pause", run).await.unwrap();
    story.until(run, &[RunState::Paused]).await;
    let interrupted: i64 =
        sqlx::query_scalar("select count(*) from engine.attempt where run_id = $1 and outcome = 'cancelled'")
            .bind(run)
            .fetch_one(&story.pool)
            .await
            .unwrap();
    assert_eq!(interrupted, 1, "the step was interrupted, it did not time out");
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_workflow_is_let_go_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    let run = story.start([touch("a"), Do::PanicHere]).await;
    story
        .until_true(
            "the run was released after the panic",
            "select owner is null and cause = 'backoff' and $2::text[] is not null from engine.run where id = $1",
            run,
            &[],
        )
        .await;
    story.ask("cancel", run).await.unwrap();
    while !story.settles(run).await.is_terminal() {
        story.advance(Duration::from_secs(10)).await;
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_fire_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    let schedule =
        Schedule { name: "nightly", cron: "0 0 3 * * *", missed: Missed::One, overlap: Overlap::Skip };
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &schedule, &Script { does: vec![touch("a")] }).await.unwrap();
    drop(conn);
    story.advance(Duration::from_secs(25 * 3600)).await;
    story
        .until_true(
            "the schedule fired",
            "select exists (select 1 from engine.tick where outcome = 'fired') and $1::uuid is not null and $2::text[] is not null",
            uuid::Uuid::nil(),
            &[],
        )
        .await;
    story.quiet().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_takes_over_through_a_pooler() {
    let short = short_lease();
    let (mut story, _pooler) = pooled_with(short.clone()).await;
    story.world.trouble("slow", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("slow"), touch("c")]).await;
    story.until_step(run, "slow", "running").await;
    // The owner's row says that its lease ended; it learns so from its next renewal.
    sqlx::query("update engine.incarnation set expires_at = clock_timestamp() - interval '1 second'")
        .execute(&story.pool)
        .await
        .unwrap();
    let other = Engine::new(story.database.options.clone(), Settings { pooler: true, ..short });
    let workers = Workers::start(&other, Arc::clone(&story.world), registry());
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    workers.stop().await;
    other.close().await;
    story.rest().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_are_killed_lose_nothing_through_a_pooler() {
    let (mut story, pooler) = pooled_idle(short_lease()).await;
    let mut runs = Vec::new();
    for point in [
        "test.script//do/after-claim",
        "test.script/touch/do/after-effect",
        "test.script/hold/do/before-commit",
        "test.script/write/do/after-commit",
        "test.script/word/do/after-rest",
        "test.script/test.child/do/before-commit",
    ] {
        let child = Do::Child(vec![touch("in")]);
        let run = story.start([touch("a"), hold("b"), Do::Write("c".into()), Do::Wait(HOUR), child]).await;
        if !point.ends_with("-rest") {
            story.signal(run, "word", "1", json!("go")).await;
        }
        let orders = Orders { pooler: Some(pooler.port), ..Orders::strike(Blow::Kill, point) };
        let status = Outsider::start(&story.database, &orders).dies().await;
        assert_eq!(status.code(), None, "the process was killed at {point}, not ended");
        story.signal(run, "word", "1", json!("go")).await;
        runs.push(run);
    }
    story.work();
    for run in runs {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_is_lost_and_no_deadline_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    let starts = (0..150).map(|n| story.start([touch("a"), Do::WaitOrNot(n % 2 * HOUR + n)]));
    let runs = futures::future::join_all(starts).await;
    // Sent at once, so that many land just as their run goes to rest, and others as their deadline passes.
    futures::future::join_all(runs.iter().map(|run| story.signal(*run, "word", "1", json!("heard")))).await;
    for (n, run) in runs.into_iter().enumerate() {
        assert_eq!(story.ends(run).await, RunState::Succeeded);
        let taken: bool = sqlx::query_scalar("select state = 'taken' from engine.signal where run_id = $1")
            .bind(run)
            .fetch_one(&story.pool)
            .await
            .unwrap();
        let heard = story.effects(run).await.iter().any(|(step, ..)| step == "heard");
        assert_eq!(taken, heard, "{}", story.describe(run).await);
        assert!(heard || n % 2 == 0, "whoever waits for an hour hears it: {}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_share_their_commits_through_a_pooler() {
    let (story, _pooler) = pooled().await;
    let starts = (0..200).map(|_| story.start([touch("a"), touch("b"), hold("c")]));
    for run in futures::future::join_all(starts).await {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    let stats = story.engine.stats();
    let (commits, rows) = (stats.commits.load(Relaxed), stats.checkpoints.load(Relaxed));
    assert!(rows >= 800 && commits < rows, "{rows} checkpoints in {commits} commits");
    story.end().await;
}

/// As an administrator, or a server that fails over, might.
#[tokio::test(flavor = "multi_thread")]
async fn ending_the_poolers_sessions_in_a_loop_breaks_nothing() {
    let (story, _pooler) = pooled().await;
    let mut runs = Vec::new();
    for _ in 0..15 {
        for _ in 0..3 {
            runs.push(story.start([touch("a"), Do::Write("b".into()), Do::Sleep(1), hold("c")]).await);
        }
        sqlx::query(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where application_name = 'driven' and datname = current_database()",
        )
        .execute(&story.pool)
        .await
        .unwrap();
    }
    for run in runs {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transaction_has_its_limits_with_a_pooler_and_without() {
    let (pooled, _pooler) = pooled().await;
    let direct = Story::new().await;
    for story in [&pooled, &direct] {
        for mut tx in
            [story.engine.pool().begin().await.unwrap(), story.engine.pool().snapshot().await.unwrap()]
        {
            let limits: Vec<String> = sqlx::query_scalar(
                "select name || ' ' || setting from pg_settings where name in
                 ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name",
            )
            .fetch_all(&mut *tx)
            .await
            .unwrap();
            assert_eq!(
                limits,
                ["idle_in_transaction_session_timeout 10000", "lock_timeout 2000", "statement_timeout 5000"]
            );
        }
    }
    pooled.end().await;
    direct.end().await;
}
