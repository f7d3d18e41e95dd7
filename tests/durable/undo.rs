//! Turning back: what was done is undone, last first, and what cannot be undone waits for a person.

use std::time::Duration;

use engine::RunState;
use uuid::Uuid;

use crate::support::failing::crash_once_at;
use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_fault_unwinds_in_reverse_to_nothing() {
    let story = Story::new().await;
    story.world.trouble("d", [Trouble::Terminal]);
    let run = story.start([hold("a"), touch("b"), hold("c"), touch("d"), hold("never")]).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    let undone: Vec<String> =
        sqlx::query_scalar("select key from engine.try where run_id = $1 and undo order by at")
            .bind(run)
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(undone, ["c", "a"]);
    let effect = |step: &str, held, undos| (step.to_owned(), held, 1, undos);
    let expected = [effect("a", false, 1), effect("b", true, 0), effect("c", false, 1)];
    assert_eq!(story.effects(run).await, expected, "what can be undone is, once; nothing else began");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anything_to_undo_a_fault_just_fails() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Terminal]);
    let run = story.start([touch("a"), touch("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Failed);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_retries_unwind_where_the_workflow_says_so() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Retry, Trouble::Retry, Trouble::Retry]);
    let run = story.start([hold("a"), touch("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_found_done_after_its_timeout_is_undone_too() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::HangAfter]);
    story.world.trouble("b", [Trouble::Terminal]);
    let run = story.start([hold("a"), hold("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    assert_eq!(story.effects(run).await, [("a".to_owned(), false, 1, 1)]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_interrupted_between_its_effect_and_its_answer_is_undone_too() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::HangAfter]);
    story.world.trouble("b", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("b")]).await;
    let happened = "select exists (select 1 from effect where run = $1) and $2::text[] is not null";
    story.until_true("the effect is there, its answer is not", happened, run, &[]).await;
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_undo_sticks_with_what_remains_until_an_operator_retries() {
    let story = Story::new().await;
    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let run = story.start([hold("a"), hold("b"), Do::Fail]).await;
    assert_eq!(story.settles(run).await, RunState::Stuck);
    let detail: serde_json::Value = sqlx::query_scalar("select cause_detail from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(detail["remaining"], serde_json::json!(["hold/b", "hold/a"]));
    assert_eq!(story.cause(run).await.as_deref(), Some("undo_failed"));
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Compensated);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_pivot_exhausted_retries_begin_again_by_themselves() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Retry, Trouble::Retry, Trouble::Retry]);
    let run = story.start([hold("a"), Do::Pivot, touch("b"), touch("c")]).await;
    // The pauses between tries are the database's, too.
    while story.state(run).await != RunState::Paused {
        story.advance(Duration::from_secs(60)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(story.cause(run).await.as_deref(), Some("retries_exhausted"));
    story.advance(quick().slow_retry).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_pivot_nothing_unwinds() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Terminal]);
    let run = story.start([hold("a"), Do::Pivot, touch("b"), touch("c")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);
    assert_eq!(story.cause(run).await.as_deref(), Some("retries_exhausted"));
    assert!(story.ask("cancel", run).await.is_err(), "cancel is refused past the pivot");
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_dies_while_a_child_is_undone_waits_for_it_again() {
    let faults = crash_once_at(&[
        "test.script/test.child/undo/before-effect",
        "test.script/test.child/undo/after-effect",
    ]);
    let story = Story::with(quick(), faults).await;
    let run = story.start([hold("a"), Do::Child(vec![hold("b"), Do::Wait(3_600_000)])]).await;
    let waits =
        "select exists (select from engine.run where parent_id = $1 and state = 'waiting' and owner is null)
        and $2::text[] is not null";
    story.until_true("its child waits", waits, run, &[]).await;
    let child: Uuid = sqlx::query_scalar("select id from engine.run where parent_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    story.ask("cancel", run).await.unwrap();
    for run in [run, child] {
        assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
        story.gave_everything_back(run).await;
    }
    story.end().await;
}

/// Whoever started it was told that it will happen, and is told otherwise by the undo of its first step.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_turned_back_before_it_began_undoes_its_first_step_and_no_other() {
    let mut story = Story::idle(quick(), None).await;
    let run = story.start([hold("a"), hold("b")]).await;
    let harmless = story.start([touch("c"), hold("d")]).await;
    for run in [run, harmless] {
        story.ask("cancel", run).await.unwrap();
    }
    story.work();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    assert_eq!(story.ends(harmless).await, RunState::Cancelled);
    assert_eq!(story.steps(run).await, ["hold/a compensated 1 1"]);
    assert_eq!(story.effects(run).await, []);
    assert_eq!(story.steps(harmless).await, [""; 0], "there is nothing to undo in it");
    story.end().await;
}
