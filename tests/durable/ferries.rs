//! Effects of different runs may share a transaction. Nobody can tell, but for the number of commits.

use std::time::Duration;

use engine::{RunState, Settings};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::support::story::{Story, quick};
use crate::support::world::Do;

const RUNS: usize = 40;

/// One connection for all effects, so that they meet there.
async fn one_ferry() -> Story {
    Story::with(Settings { drive_connections: 4, force_after: Duration::ZERO, ..quick() }, None).await
}

/// Starts runs that write, and lets go of the table only once all of them are under way.
async fn all_at_once(story: &Story, keys: impl IntoIterator<Item = String>) -> Vec<Uuid> {
    let held = hold_the_table(story).await;
    let runs = begin(story, keys).await;
    held.commit().await.unwrap();
    runs
}

async fn hold_the_table(story: &Story) -> Transaction<'static, Postgres> {
    let mut held = story.pool.begin().await.unwrap();
    sqlx::query("lock table effect in exclusive mode").execute(&mut *held).await.unwrap();
    held
}

async fn begin(story: &Story, keys: impl IntoIterator<Item = String>) -> Vec<Uuid> {
    let mut runs = Vec::new();
    for key in keys {
        runs.push(story.start([Do::Write(key)]).await);
    }
    for run in &runs {
        story
            .until_true(
                "the run is being driven",
                "select owner is not null and $2::text[] is not null from engine.run where id = $1",
                *run,
                &[],
            )
            .await;
    }
    runs
}

/// How many transactions wrote these effects.
async fn commits(story: &Story) -> i64 {
    sqlx::query_scalar("select count(distinct xmin::text) from effect").fetch_one(&story.pool).await.unwrap()
}

async fn each_wrote_once(story: &Story, runs: &[Uuid]) {
    for run in runs {
        assert_eq!(story.ends(*run).await, RunState::Succeeded, "{}", story.describe(*run).await);
        assert_eq!(story.effects(*run).await.len(), 1);
    }
}

fn keys() -> impl Iterator<Item = String> {
    (0..RUNS).map(|n| format!("w{n}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_loses_a_deadlock_is_committed_all_the_same_and_once() {
    let story = one_ferry().await;
    let table = hold_the_table(&story).await;
    let run = begin(&story, ["w".to_owned()]).await[0];
    let waits = "select exists (select 1 from pg_locks where relation = 'effect'::regclass and not granted)
                 and $1::uuid is not null and $2::text[] is not null";
    story.until_true("the effect waits for the table", waits, run, &[]).await;
    // Somebody holds the run that the effect locks last, and then wants what the effect took first. They are patient, so it is
    // the effect's transaction that the database ends.
    let mut other = story.pool.begin().await.unwrap();
    sqlx::query("set local deadlock_timeout = '1min'").execute(&mut *other).await.unwrap();
    sqlx::query("select from engine.run where id = $1 for update")
        .bind(run)
        .execute(&mut *other)
        .await
        .unwrap();
    table.commit().await.unwrap();
    sqlx::query("lock table effect in exclusive mode").execute(&mut *other).await.unwrap();
    other.commit().await.unwrap();
    each_wrote_once(&story, &[run]).await;
    let lost =
        "select deadlocks > 0 and $1::uuid is not null and $2::text[] is not null from pg_stat_database
                where datname = current_database()";
    story.until_true("the database tells of a deadlock", lost, run, &[]).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_that_meet_are_committed_together_and_each_once() {
    let story = one_ferry().await;
    let runs = all_at_once(&story, keys()).await;
    each_wrote_once(&story, &runs).await;
    let commits = commits(&story).await;
    assert!(commits <= 20, "{commits} transactions for {RUNS} effects");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_effect_fails_alone() {
    let story = one_ferry().await;
    sqlx::query("alter table effect add check (step <> 'bad')").execute(&story.pool).await.unwrap();
    let mut runs = all_at_once(&story, keys().take(20).chain(["bad".into()]).chain(keys().skip(20))).await;
    let bad = runs.remove(20);
    each_wrote_once(&story, &runs).await;
    assert_eq!(story.settles(bad).await, RunState::Failed, "{}", story.describe(bad).await);
    assert!(story.effects(bad).await.is_empty());
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_taken_away_while_its_effect_waits_for_the_commit_takes_nobody_with_it() {
    let story = one_ferry().await;
    let held = hold_the_table(&story).await;
    let runs = begin(&story, keys()).await;
    for taken in [runs[0], runs[7]] {
        story.ask("force", taken).await.unwrap();
    }
    held.commit().await.unwrap();
    each_wrote_once(&story, &runs).await;
    story.end().await;
}
