//! What is old goes, without a live run noticing.

use std::time::Duration;

use engine::{RunState, Settings};
use serde_json::json;
use uuid::Uuid;

use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, touch};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: u64 = 3_600_000;

/// Tries that did not succeed; those that did are in the journal.
async fn failed_tries(story: &Story, run: Uuid) -> i64 {
    sqlx::query_scalar("select count(*) from engine.attempt where run_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_dropped_under_a_live_run_changes_nothing_for_it() {
    let mut story = Story::idle(quick(), None).await;
    sqlx::query("select engine.make_partitions(7)").execute(&story.pool).await.unwrap();
    story.work();
    story.world.trouble("a", [Trouble::Retry]);
    let run = story.start([touch("a"), Do::Sleep(10 * 24 * HOUR), touch("b")]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(failed_tries(&story, run).await, 1, "there is something to lose");
    story.advance(5 * DAY).await;
    sqlx::query("select engine.make_partitions(7)").execute(&story.pool).await.unwrap();
    let dropped: i32 =
        sqlx::query_scalar("select engine.drop_partitions(2)").fetch_one(&story.pool).await.unwrap();
    assert!(dropped >= 1, "the day of the first tries is gone");
    assert_eq!(failed_tries(&story, run).await, 0);
    story.advance(6 * DAY).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(
        story.steps(run).await,
        ["touch/a succeeded 2 0", "sleep/ succeeded 1 0", "touch/b succeeded 1 0"]
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_of_days_without_a_partition_are_kept_too() {
    let story = Story::new().await;
    story.advance(100 * DAY).await;
    story.world.trouble("a", [Trouble::Retry]);
    let run = story.start([touch("a")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    // The day now has rows in the default partition; making its own must neither fail nor lose them.
    sqlx::query("select engine.make_partitions(7)").execute(&story.pool).await.unwrap();
    assert_eq!(failed_tries(&story, run).await, 1);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_runs_go_after_their_time_and_live_ones_stay() {
    let mut story = Story::with(Settings { keep_runs: DAY, ..quick() }, None).await;
    let done = futures::future::join_all((0..20).map(|_| story.start([touch("a"), Do::Wait(HOUR)]))).await;
    for run in &done {
        story.signal(*run, "word", "1", json!("go")).await;
        story.ends(*run).await;
    }
    let waiting = story.start([touch("a"), Do::Wait(1000 * HOUR)]).await;
    story.until(waiting, &[RunState::Waiting]).await;
    story.advance(2 * DAY).await;
    let recent = story.start([touch("a")]).await;
    story.ends(recent).await;
    // Workers sweep when they begin.
    story.rest().await;
    story.work();
    story
        .until_true(
            "the old runs are gone",
            "select count(*) = 2 and $1::uuid is not null and $2::text[] is not null from engine.run",
            waiting,
            &[],
        )
        .await;
    assert_eq!(story.state(waiting).await, RunState::Waiting);
    let orphans: i64 = sqlx::query_scalar(
        "select (select count(*) from engine.journal s where not exists (select 1 from engine.run r where r.id = s.run_id))
              + (select count(*) from engine.signal s where not exists (select 1 from engine.run r where r.id = s.run_id))",
    )
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert_eq!(orphans, 0, "their steps and signals went with them");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_no_run_names_are_removed() {
    let mut story = Story::idle(quick(), None).await;
    for (id, job) in [
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "not a run"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAW", "00000000-0000-0000-0000-000000000009"),
    ] {
        sqlx::query(
            "insert into apalis.jobs (id, job_type, job, run_at) values ($1, 'drive', convert_to($2, 'UTF8'), now() - interval '1 hour')",
        )
        .bind(id)
        .bind(job)
        .execute(&story.pool)
        .await
        .unwrap();
    }
    story.work();
    story
        .until_true(
            "the queue is empty",
            "select not exists (select 1 from apalis.jobs) and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
    story.end().await;
}
