//! One lifecycle action per target, and the one that takes over.

use std::time::Duration;

use engine::{OperateError, RunState, Start, StartError};
use uuid::Uuid;

use crate::support::story::{Story, operator, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

pub(super) fn on(target: &str) -> Start {
    Start { target: Some(target.into()), ..start() }
}

pub(super) fn taking_over(target: &str) -> Start {
    Start { supersede: true, ..on(target) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_action_is_refused_with_the_holders_run() {
    let story = Story::new().await;
    let first = story.start_as([Do::Wait(HOUR)], on("x")).await.unwrap();
    match story.start_as([touch("a")], on("x")).await {
        Err(StartError::TargetBusy(holder)) => assert_eq!(holder.id, first.id),
        other => panic!("{other:?}"),
    }
    story.ask("cancel", first.id).await.unwrap();
    story.ends(first.id).await;
    let second = story.start_as([touch("a")], on("x")).await.unwrap();
    assert_eq!(story.ends(second.id).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_a_waiting_run_waits_for_its_undo() {
    let story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(removal.waits_for, Some(deploy.id));
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    let late: bool = sqlx::query_scalar(
        "select r.started_at >= d.finished_at from engine.run r, engine.run d where r.id = $1 and d.id = $2",
    )
    .bind(removal.id)
    .bind(deploy.id)
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(late, "the successor began only after the holder's undo");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_twice_is_one_successor() {
    let mut story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    // Nobody drives, so the holder cannot end between the two.
    story.rest().await;
    let first = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    let second = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!((second.id, second.existing), (first.id, true));
    story.work();
    assert_eq!(story.ends(first.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_a_paused_run_undoes_it_first() {
    let story = Story::new().await;
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    let deploy = story.start_as([hold("a"), touch("odd")], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Paused]).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_a_stuck_run_pays_its_remaining_undos() {
    let story = Story::new().await;
    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), hold("b"), Do::Fail], on("x")).await.unwrap();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    assert!(story.effects(deploy.id).await.iter().any(|(_, held, ..)| *held));
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

/// Its journal says that it began something, and its function does not come by there any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_stuck_run_owes_and_nobody_can_undo_is_not_forgotten_with_it() {
    let story = Story::new().await;
    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), hold("b"), Do::Fail], on("x")).await.unwrap();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    let set_input = |input: &'static str| {
        let set = sqlx::query("update engine.run set input = $2::jsonb where id = $1");
        set.bind(deploy.id).bind(input).execute(&story.pool)
    };
    set_input(r#"{"does": [{"Hold": "a"}]}"#).await.unwrap();
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.settles(removal.id).await, RunState::Paused);
    assert_eq!(story.cause(removal.id).await.as_deref(), Some("nondeterministic"));
    let told = story.describe(removal.id).await;
    assert!(told.contains("hold/b"), "{told}");
    assert_eq!(story.state(deploy.id).await, RunState::Stuck);
    set_input(r#"{"does": [{"Hold": "a"}, {"Hold": "b"}, "Fail"]}"#).await.unwrap();
    story.ask("retry", removal.id).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded, "{}", story.describe(removal.id).await);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stuck_run_owes_waits_for_somebody_who_knows_its_version() {
    let story = Story::new().await;
    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), hold("b"), Do::Fail], on("x")).await.unwrap();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    let set_version = |version: i32| {
        let set = sqlx::query("update engine.run set version = $2 where id = $1");
        set.bind(deploy.id).bind(version).execute(&story.pool)
    };
    set_version(99).await.unwrap();
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    let unknown =
        "select exists (select 1 from engine.run_cause where run_id = $1 and code = 'unknown_version')
        and $2::text[] is not null";
    story.until_true("the successor says what nobody knows", unknown, removal.id, &[]).await;
    let refused = story.ask("retry", deploy.id).await;
    assert!(matches!(refused, Err(OperateError::Conflict { .. })), "two would undo the same: {refused:?}");
    assert!(story.effects(deploy.id).await.iter().any(|(_, held, ..)| *held), "nothing was forgotten");
    set_version(1).await.unwrap();
    story.advance(Duration::from_secs(10)).await;
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_was_paused_and_resumed_still_waits_for_its_turn() {
    let story = Story::new().await;
    story.world.trouble("a/undo", [Trouble::UndoHangs]);
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    story.until_step(deploy.id, "a", "compensating").await;
    for act in ["pause", "resume", "pause", "retry"] {
        story.ask(act, removal.id).await.unwrap();
    }
    // Somebody who came later has ended, so whoever might have been admitted was.
    let later = story.start([touch("later")]).await;
    story.ends(later).await;
    assert_eq!(story.state(removal.id).await, RunState::Queued);
    let cause: String = sqlx::query_scalar("select code from engine.run_cause where run_id = $1")
        .bind(removal.id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(cause, "waiting_for_run");
    story.world.gate.add_permits(1);
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_took_debts_over_cannot_be_cancelled() {
    let story = Story::new().await;
    story.world.trouble("a/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), Do::Fail], on("x")).await.unwrap();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    let removal = story.start_as([Do::Wait(HOUR)], taking_over("x")).await.unwrap();
    let refused = story.ask("cancel", removal.id).await;
    assert!(matches!(refused, Err(OperateError::Conflict { .. })), "nobody would pay: {refused:?}");
    story.until(removal.id, &[RunState::Waiting]).await;
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

/// Its own drive does not come by for as long as it is paused.
async fn cancel_and_pause(story: &Story, run: Uuid) {
    let mut tx = story.pool.begin().await.unwrap();
    story.engine.cancel(&mut tx, run, &operator()).await.unwrap();
    story.engine.pause(&mut tx, run, &operator()).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_was_cancelled_takes_nothing_over() {
    let mut story = Story::new().await;
    story.world.trouble("a/undo", [Trouble::UndoFails]);
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    story.rest().await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    cancel_and_pause(&story, removal.id).await;
    story.work();
    assert_eq!(story.settles(deploy.id).await, RunState::Stuck);
    match story.start_as([touch("b")], on("x")).await {
        Err(StartError::TargetBusy(holder)) => assert_eq!(holder.id, deploy.id, "it keeps what it must undo"),
        other => panic!("{other:?}"),
    }
    story.ask("resume", removal.id).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Cancelled);
    story.ask("retry", deploy.id).await.unwrap();
    assert_eq!(story.ends(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_again_after_a_cancel_is_another_successor() {
    let mut story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    story.rest().await;
    let first = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    story.ask("cancel", first.id).await.unwrap();
    let second = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!((second.existing, second.waits_for), (false, Some(deploy.id)), "the first will do nothing");
    story.ask("pause", deploy.id).await.unwrap();
    story.work();
    assert_eq!(story.ends(first.id).await, RunState::Cancelled);
    assert_eq!(story.state(deploy.id).await, RunState::Paused);
    assert_eq!(story.state(second.id).await, RunState::Queued, "the holder is there still");
    story.ask("resume", deploy.id).await.unwrap();
    assert_eq!(story.ends(second.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_can_be_cancelled_while_it_waits() {
    let mut story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    story.rest().await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    story.ask("cancel", removal.id).await.unwrap();
    story.work();
    assert_eq!(story.ends(removal.id).await, RunState::Cancelled);
    assert_eq!(story.ends(deploy.id).await, RunState::Cancelled);
    let next = story.start_as([touch("again")], on("x")).await.unwrap();
    assert_eq!(story.ends(next.id).await, RunState::Succeeded);
    story.end().await;
}

/// What whoever takes over left with an owner that had heard of the pause already, and obeyed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_was_obeyed_after_the_take_over_is_ended() {
    let mut story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    story.rest().await;
    cancel_and_pause(&story, deploy.id).await;
    let left = "update engine.run set request = 'cancel' where id = $1 and state = 'paused' and unwinding";
    let left = sqlx::query(left).bind(deploy.id).execute(&story.pool).await.unwrap();
    assert_eq!(left.rows_affected(), 1);
    story.work();
    assert_eq!(story.ends(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_sets_an_undo_going_that_was_paused() {
    let story = Story::new().await;
    let deploy = story.start_as([hold("a"), Do::Wait(HOUR)], on("x")).await.unwrap();
    story.until(deploy.id, &[RunState::Waiting]).await;
    cancel_and_pause(&story, deploy.id).await;
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(deploy.id).await, RunState::Cancelled);
    story.gave_everything_back(deploy.id).await;
    story.end().await;
}

/// Its parent held the target for both.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_tried_again_holds_what_its_parent_held() {
    let story = Story::new().await;
    story.world.trouble("in", [Trouble::Terminal]);
    let parent = story.start_as([Do::Child(vec![touch("in"), Do::Wait(HOUR)])], on("x")).await.unwrap();
    story.settles(parent.id).await;
    let child = child_of(&story, parent.id).await;
    let again = story.ask("retry", child).await.unwrap();
    let refused = story.start_as([touch("too many")], on("x")).await;
    assert!(matches!(&refused, Err(StartError::TargetBusy(holder)) if holder.id == again.id), "{refused:?}");
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
    assert_eq!(story.state(again.id).await, RunState::Cancelled);
    story.end().await;
}

/// Its parent's target is taken over, and nothing is left of either.
async fn is_taken_over(story: &Story, parent: Uuid) {
    let removal = story.start_as([touch("gone")], taking_over("x")).await.unwrap();
    assert_eq!(story.ends(removal.id).await, RunState::Succeeded, "{}", story.describe(removal.id).await);
    assert_eq!(story.ends(parent).await, RunState::Cancelled);
    let child = child_of(story, parent).await;
    assert_eq!(story.ends(child).await, RunState::Cancelled);
    story.gave_everything_back(child).await;
}

async fn child_of(story: &Story, parent: Uuid) -> Uuid {
    sqlx::query_scalar("select id from engine.run where parent_id = $1")
        .bind(parent)
        .fetch_one(&story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_over_from_a_parent_whose_child_is_stuck_undoes_what_the_child_left() {
    let story = Story::new().await;
    story.world.trouble("in/undo", [Trouble::UndoFails]);
    let does = [hold("mine"), Do::Child(vec![hold("in"), Do::Fail])];
    let parent = story.start_as(does, on("x")).await.unwrap();
    story.until(parent.id, &[RunState::Waiting]).await;
    let child = child_of(&story, parent.id).await;
    assert_eq!(story.settles(child).await, RunState::Stuck);
    is_taken_over(&story, parent.id).await;
    story.gave_everything_back(parent.id).await;
    story.end().await;
}

/// Who waits for the target is there before the child is stuck.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_gets_stuck_while_its_parent_is_taken_over_holds_up_nobody() {
    let story = Story::new().await;
    story.world.trouble("in/undo", [Trouble::UndoFails]);
    let does = [Do::Child(vec![hold("in"), Do::Wait(HOUR)])];
    let parent = story.start_as(does, on("x")).await.unwrap();
    story.until(parent.id, &[RunState::Waiting]).await;
    story.until(child_of(&story, parent.id).await, &[RunState::Waiting]).await;
    is_taken_over(&story, parent.id).await;
    story.end().await;
}
