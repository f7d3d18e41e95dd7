//! What a run owes whose own function cannot pay it any more: whoever takes its target over pays all that can be told, and
//! nothing else is forgotten.

use std::time::Duration;

use engine::{RunState, Settings};
use uuid::Uuid;

use super::targets::{on, taking_over};
use crate::support::failing::crash_once_at;
use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

/// Moves the clock for a run that is tried again and again; while it is driven time stands still, or it would be taken for lost.
async fn settles_as_time_passes(story: &Story, run: Uuid) -> RunState {
    let waits = "select owner is null and queued_job is null from engine.run where id = $1";
    let settled = async {
        while !story.state(run).await.is_settled() {
            if sqlx::query_scalar(waits).bind(run).fetch_one(&story.pool).await.unwrap() {
                story.advance(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled).await.expect("it comes to rest");
    story.settles(run).await
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_a_run_that_panics_pays_what_it_owes() {
    let story = Story::with(Settings { max_claims: 2, ..quick() }, None).await;
    let does = [hold("a"), Do::Write("b".into()), Do::PanicHere];
    let deploy = story.start_as(does, on("x")).await.unwrap();
    assert_eq!(settles_as_time_passes(&story, deploy.id).await, RunState::Paused);
    assert_eq!(story.cause(deploy.id).await.as_deref(), Some("crash_loop"));
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(settles_as_time_passes(&story, removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    assert_eq!(story.effects(deploy.id).await[0], ("a".to_owned(), false, 1, 1));
    story.end().await;
}

/// Gives a step another input in the journal, as a release does that changes one; returns the row as it was.
async fn change_input(story: &Story, run: Uuid, seq: i32) -> String {
    let row = "select events::text from engine.journal where run_id = $1 and seq = $2";
    let was: String = sqlx::query_scalar(row).bind(run).bind(seq).fetch_one(&story.pool).await.unwrap();
    let change = r#"update engine.journal set events = regexp_replace(events::text, '"hash":"[0-9a-f]+"', '"hash":"00"')::json
           where run_id = $1 and seq = $2"#;
    let changed = sqlx::query(change).bind(run).bind(seq).execute(&story.pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
    was
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_a_run_that_cannot_be_replayed_pays_what_it_owes() {
    let story = Story::new().await;
    let deploy = story.start_as([hold("a"), touch("b"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    change_input(&story, deploy.id, 1).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.settles(removal.id).await, RunState::Succeeded, "{}", story.describe(deploy.id).await);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    assert_eq!(story.effects(deploy.id).await[0], ("a".to_owned(), false, 1, 1));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_with_another_input_is_not_undone_with_this_one() {
    let story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    let was = change_input(&story, deploy.id, 0).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.settles(removal.id).await, RunState::Paused, "{}", story.describe(removal.id).await);
    assert_eq!(story.cause(removal.id).await.as_deref(), Some("nondeterministic"));
    assert!(story.describe(removal.id).await.contains("hold/a"));
    assert_eq!(story.state(deploy.id).await, RunState::Stuck);
    assert_eq!(story.effects(deploy.id).await, [("a".to_owned(), true, 1, 0)]);
    let restore = "update engine.journal set events = $2::json where run_id = $1 and seq = 0";
    sqlx::query(restore).bind(deploy.id).bind(was).execute(&story.pool).await.unwrap();
    story.ask("retry", removal.id).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded, "{}", story.describe(removal.id).await);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_heir_that_dies_while_it_pays_goes_on_paying() {
    let faults = crash_once_at(&[
        "test.script/undo_of_superseded_run/do/before-commit",
        "test.script/undo_of_superseded_run/do/after-commit",
        "test.script/undo_of_superseded_run/do/before-effect",
        "test.script/undo_of_superseded_run/do/after-effect",
        "test.script/close_superseded_run/do/before-commit",
        "test.script/close_superseded_run/do/after-commit",
    ]);
    let story = Story::with(quick(), faults).await;
    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), hold("b"), Do::Fail], on("x")).await.unwrap();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.settles(removal.id).await, RunState::Succeeded, "{}", story.describe(removal.id).await);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_that_the_database_refuses_passes_to_whoever_waits_for_the_target() {
    let story = Story::new().await;
    let refuse = "alter table engine.journal add constraint picky
        check (not (events::text like '%deaf%' and events::text like '%compensating%'))";
    sqlx::raw_sql(refuse).execute(&story.pool).await.unwrap();
    let deploy = story.start_as([hold("deaf"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded, "{}", story.describe(deploy.id).await);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    sqlx::raw_sql("alter table engine.journal drop constraint picky").execute(&story.pool).await.unwrap();
    story.end().await;
}
