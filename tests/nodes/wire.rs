//! Whatever becomes of the wire between a node and the platform, a task is done once, and what became of it is told when the
//! wire is whole again.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use engine::RunState;
use uuid::Uuid;

use super::agent::{Line, TASK_IS_OUT, journal, launch, stage};
use crate::support::agent::{RunningAgent, now_of, token};
use crate::support::wire::{Mode, Wire};

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// It breaks while the node works, and one more task is asked for before it heals.
async fn breaks(mode: Mode) {
    let line = Line::new().await;
    let wire = Wire::to(&line.door.url).await;
    let driver = Simulated::new();
    let token = token(&line.http, "gpu-1").await;
    let agent = RunningAgent::join(&wire.url, &token, &driver, now_of(&line.http)).await;
    driver.will(SimulatedFault::Hang);
    let (first, task) = line.give(agent.id, &launch(&stage(), Uuid::now_v7(), 1), 1).await;
    line.story.until_true("the task is with the agent", TASK_IS_OUT, task, &[]).await;
    until(|| journal(&agent).contains("begun")).await;
    wire.is(mode);
    driver.release(1);
    until(|| journal(&agent).contains("finished")).await;
    let (second, _) = line.give(agent.id, &launch(&stage(), Uuid::now_v7(), 1), 1).await;
    if mode == Mode::AnswersLost {
        assert_eq!(line.story.ends(first).await, RunState::Succeeded, "it is heard, and nobody knows that");
    } else {
        assert_eq!(line.story.state(first).await, RunState::Waiting, "nothing was heard");
    }
    assert!(!journal(&agent).contains("\"told\""), "nobody told the agent that it was heard: {mode:?}");
    wire.is(Mode::Open);
    assert_eq!(line.story.ends(first).await, RunState::Succeeded, "{mode:?}");
    // Where the answer to a poll was lost, its task comes again when its lease is over.
    line.story.advance(Duration::from_secs(61)).await;
    assert_eq!(line.story.ends(second).await, RunState::Succeeded, "{mode:?}");
    assert_eq!(driver.launches(), 2, "each was done once: {mode:?}");
    until(|| journal(&agent).matches("\"told\"").count() == 2).await;
    agent.end().await;
    drop(wire);
    line.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_is_cut_costs_nothing() {
    breaks(Mode::Cut).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_hangs_costs_nothing() {
    breaks(Mode::Hung).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_loses_every_answer_costs_nothing() {
    breaks(Mode::AnswersLost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_loses_every_question_costs_nothing() {
    breaks(Mode::QuestionsLost).await;
}
