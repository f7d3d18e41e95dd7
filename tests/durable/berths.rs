//! A run that begins where it was started does so whatever its starter does next.

use engine::{RunState, Settings};
use uuid::Uuid;

use crate::support::story::{Story, quick, start};
use crate::support::world::{Script, touch};

async fn jobs_of(story: &Story, run: Uuid) -> i64 {
    sqlx::query_scalar("select count(*) from apalis.jobs where convert_from(job, 'UTF8') = $1::text")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_waits_a_run_begins_without_passing_through_the_queue() {
    let story = Story::new().await;
    story.settles(story.start([touch("first")]).await).await;
    let fetched = story.engine.stats().jobs_fetched.load(std::sync::atomic::Ordering::Relaxed);
    let run = story.start([touch("a")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(story.engine.stats().jobs_fetched.load(std::sync::atomic::Ordering::Relaxed), fetched);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_starter_commits_and_goes_away_runs_all_the_same() {
    let story = Story::new().await;
    story.settles(story.start([touch("first")]).await).await;
    let mut tx = story.pool.begin().await.unwrap();
    let started = story.engine.start(&mut tx, &Script { does: vec![touch("a")] }, start()).await.unwrap();
    let run = started.id;
    drop(started);
    assert_eq!(jobs_of(&story, run).await, 0, "it was to begin right here");
    tx.commit().await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_rolled_back_leaves_nothing_and_gives_its_slot_back() {
    let story = Story::with(Settings { slots: 1, ..quick() }, None).await;
    story.settles(story.start([touch("first")]).await).await;
    for _ in 0..3 {
        let mut tx = story.pool.begin().await.unwrap();
        let started = story.engine.start(&mut tx, &Script { does: vec![touch("a")] }, start()).await.unwrap();
        tx.rollback().await.unwrap();
        drop(started);
    }
    let run = story.start([touch("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let runs: i64 =
        sqlx::query_scalar("select count(*) from engine.run").fetch_one(&story.pool).await.unwrap();
    assert_eq!(runs, 2, "what was rolled back never was");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_outlives_the_process_it_was_to_begin_in_is_taken_up_by_the_next() {
    let mut story = Story::new().await;
    story.settles(story.start([touch("first")]).await).await;
    let mut tx = story.pool.begin().await.unwrap();
    let started = story.engine.start(&mut tx, &Script { does: vec![touch("a")] }, start()).await.unwrap();
    let run = started.id;
    drop(started);
    // The process ends while the starter's transaction is still open; the commit names a dead owner.
    story.rest().await;
    tx.commit().await.unwrap();
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}
