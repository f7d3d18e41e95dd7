//! The basic stories through a transaction pooler, where nothing may rest on a session.

use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Missed, Overlap, RunState, Schedule, Settings, Workers};
use serde_json::json;

use crate::support::database::TestDatabase;
use crate::support::pooler::Pooler;
use crate::support::story::{Story, quick, registry};
use crate::support::world::{Do, Script, Trouble, World, hold, touch};

const HOUR: u64 = 3_600_000;

/// The engine reaches Postgres through the pooler; the story and the world look on directly.
async fn pooled() -> (Story, Pooler) {
    pooled_with(quick()).await
}

async fn pooled_with(settings: Settings) -> (Story, Pooler) {
    let mut database = TestDatabase::new().await;
    let (pooler, direct) = (Pooler::before(&database), database.pool());
    database.options = database.options.host("127.0.0.1").port(pooler.port);
    let mut story = Story::on(database, Settings { pooler: true, ..settings }, None);
    let world = Arc::new(World::new(direct.clone()));
    (story.pool, story.world) = (direct, world);
    story.work();
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
    let short = crate::support::outsider::short_lease();
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
