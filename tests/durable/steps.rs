//! Steps, retries, transactions: what happens once, what is tried again, and what is remembered.

use std::time::Duration;

use engine::{RunState, Settings};
use uuid::Uuid;

use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

#[tokio::test(flavor = "multi_thread")]
async fn every_step_happens_once_and_in_order() {
    let story = Story::new().await;
    let run = story.start([touch("a"), hold("b"), Do::Write("c".into()), touch("d")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(
        story.steps(run).await,
        ["touch/a succeeded 1 0", "hold/b succeeded 1 0", "write/ succeeded 1 0", "touch/d succeeded 1 0"]
    );
    let effects = story.effects(run).await;
    assert!(effects.iter().all(|(_, held, calls, undos)| *held && *calls == 1 && *undos == 0), "{effects:?}");
    assert_eq!(effects.len(), 4);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_trouble_is_tried_again_and_remembered() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::Retry, Trouble::Retry]);
    let run = story.start([touch("a"), touch("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(story.steps(run).await, ["touch/a succeeded 3 0", "touch/b succeeded 1 0"]);
    let outcomes: Vec<String> =
        sqlx::query_scalar("select outcome from engine.try where run_id = $1 and key = 'a' order by attempt")
            .bind(run)
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(outcomes, ["retry", "retry", "succeeded"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_backoff_is_kept_by_the_database_and_holds_no_worker() {
    let settings = Settings { inline_retry: Duration::ZERO, ..quick() };
    let mut story = Story::with(settings, None).await;
    story.world.trouble("a", [Trouble::Retry]);
    let run = story.start([touch("a")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.rest().await;
    let rows: i64 = sqlx::query_scalar("select count(*) from engine.journal where run_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(rows, 4, "intent, backoff, second intent and end are four checkpoints");
    story.end().await;
}

/// The clock stands still, so that a wait of less than a second can be looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_backoff_gives_its_slot_back_and_says_why_nothing_happens() {
    let story = Story::with(Settings { slots: 1, ..quick() }, None).await;
    sqlx::raw_sql(
        "create table engine.stopped_clock as select clock_timestamp() as at;
         create or replace function engine.now() returns timestamptz language sql volatile parallel safe as
             'select at + ahead from engine.stopped_clock, engine.test_clock'",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    story.world.trouble("a", [Trouble::Retry, Trouble::Retry]);
    let run = story.start([Do::Soon("a".into())]).await;
    story.until(run, &[RunState::Waiting]).await;
    let (code, at): (String, bool) =
        sqlx::query_as("select code, next_at is not null from engine.run_cause where run_id = $1")
            .bind(run)
            .fetch_one(&story.pool)
            .await
            .unwrap();
    assert_eq!((code.as_str(), at), ("backoff", true));
    let other = story.start([touch("b")]).await;
    assert_eq!(story.ends(other).await, RunState::Succeeded, "the only slot is free");
    while !story.state(run).await.is_terminal() {
        story.advance(Duration::from_secs(2)).await;
        story.quiet().await;
    }
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_step_times_out_and_is_observed_before_it_is_repeated() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::HangAfter]);
    let run = story.start([hold("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(
        story.effects(run).await,
        [("b".to_owned(), true, 1, 0)],
        "the effect was found, not repeated"
    );
    let outcomes: Vec<String> =
        sqlx::query_scalar("select outcome from engine.try where run_id = $1 order by attempt")
            .bind(run)
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(outcomes, ["timed_out", "found_done"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_step_is_an_ordinary_fault() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::Panic]);
    let run = story.start([touch("a")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(story.steps(run).await, ["touch/a succeeded 2 0"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_starts_with_one_key_are_one_run() {
    let story = Story::new().await;
    let options = || engine::Start { start_key: Some("the-key".into()), ..start() };
    let starts = (0..1000).map(|_| story.start_as([touch("a")], options()));
    let ids: Vec<Uuid> =
        futures::future::try_join_all(starts).await.unwrap().into_iter().map(|s| s.id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(story.ends(ids[0]).await, RunState::Succeeded);
    let runs: i64 =
        sqlx::query_scalar("select count(*) from engine.run").fetch_one(&story.pool).await.unwrap();
    assert_eq!(runs, 1);
    story.end().await;
}
