//! What a running agent makes of tasks that come twice, out of order, again, too late, or from somebody else: each instance's
//! workload is started at most once, and nothing that was removed comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use agent::{Driver, Now, Simulated, SimulatedFault};
use chrono::{TimeDelta, Utc};
use domain::{Secret, StatusReason};
use node_protocol::{
    Control, ControlAction, Envelope, Evidence, Generations, Key, Outcome, Output, Refusal, Remove, Signed,
    Task,
};
use uuid::Uuid;

use super::agent::{journal, launch, stage};
use crate::support::agent::RunningAgent;
use crate::support::false_platform::FalsePlatform;

pub(super) struct Node {
    pub(super) platform: FalsePlatform,
    pub(super) driver: Simulated,
    agent: RunningAgent,
    /// How far the node's clock is ahead, in seconds.
    ahead: Arc<AtomicI64>,
}

impl Node {
    pub(super) async fn start() -> Node {
        let (platform, driver) = (FalsePlatform::start().await, Simulated::new());
        let ahead = Arc::new(AtomicI64::new(0));
        let seconds = Arc::clone(&ahead);
        let now: Now = Arc::new(move || Utc::now() + TimeDelta::seconds(seconds.load(Ordering::SeqCst)));
        let token = Secret::new("any".to_owned());
        let agent = RunningAgent::join(&platform.url, &token, &driver, now).await;
        Node { platform, driver, agent, ahead }
    }

    pub(super) fn launch(&self, instance: Uuid, generation: i64) -> Envelope {
        self.platform.task(&launch(&stage(), instance, generation), instance, generation)
    }

    pub(super) fn removal(&self, instance: Uuid, generation: i64) -> Envelope {
        let generations = Generations::UpTo(generation);
        let remove = Remove { instance_id: instance, generations, for_good: true };
        self.platform.task(&Task::OciRemove(remove), instance, generation)
    }

    /// Hands these out and waits for so many answers more, in whichever order they come.
    pub(super) async fn answers(&self, tasks: &[&Envelope]) -> Vec<(Uuid, Outcome)> {
        let before = self.platform.answers(0).await.len();
        for task in tasks {
            self.platform.hands_out(task);
        }
        self.platform.answers(before + tasks.len()).await.split_off(before)
    }

    pub(super) async fn answer(&self, task: &Envelope) -> Outcome {
        self.answers(&[task]).await.remove(0).1
    }

    /// What was answered already. A copy that comes while the first is still in hand is dropped, so it is handed out until it is not.
    /// On a slow machine more copies than one may be answered, and late: only answers to this very task count.
    async fn answers_again(&self, task: &Envelope) -> Outcome {
        let answers = async || {
            let all = self.platform.answers(0).await.into_iter();
            all.filter(|(id, _)| *id == task.task_id).map(|(_, outcome)| outcome).collect::<Vec<_>>()
        };
        let before = answers().await.len();
        for tries in 0..6000 {
            if tries % 100 == 0 {
                self.platform.hands_out(task);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            if let Some(again) = answers().await.into_iter().nth(before) {
                return again;
            }
        }
        panic!("it is not answered again");
    }

    /// Waits until so many lines of this kind are in the agent's journal.
    pub(super) async fn wrote(&self, entry: &str, lines: usize) {
        while journal(&self.agent).matches(&format!("\"{entry}\"")).count() < lines {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) async fn end(self) {
        self.agent.end().await;
    }
}

pub(super) fn refused(refusal: Refusal) -> Outcome {
    Outcome::Refused { refusal }
}

pub(super) fn is_launched(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Succeeded { output: Output::Launched { .. } })
}

pub(super) fn is_clean(outcome: &Outcome) -> bool {
    let Outcome::Succeeded { output: Output::Removed { evidence } } = outcome else { return false };
    evidence.said::<Evidence>().is_some_and(|said| said.is_clean())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_twice_or_again_is_done_once_and_answered_the_same() {
    let node = Node::start().await;
    let instance = Uuid::now_v7();
    let first = node.launch(instance, 1);
    let outcome = node.answer(&first).await;
    assert!(is_launched(&outcome), "{outcome:?}");
    assert_eq!(node.answers_again(&first).await, outcome, "the same bytes again");
    // By the key alone it is the same: of an id of its own, so that no late answer to a copy of the first is taken for its.
    let later = Envelope { task_id: Uuid::now_v7(), epoch: 2, ..first.clone() };
    assert_eq!(node.answers_again(&later).await, outcome, "the same step of a later try");
    assert_eq!(node.driver.launches(), 1);
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_out_of_order_is_refused_where_something_newer_was_seen() {
    let node = Node::start().await;
    let instance = Uuid::now_v7();
    let (old, new) = (node.launch(instance, 1), node.launch(instance, 2));
    assert!(is_launched(&node.answer(&new).await));
    assert_eq!(node.answer(&old).await, refused(Refusal::StaleGeneration));
    assert_eq!(node.answer(&node.removal(instance, 1)).await, refused(Refusal::StaleGeneration));
    assert!(is_clean(&node.answer(&node.removal(instance, 3)).await));
    // A launch that was on its way all the while, under a key that was never seen.
    for generation in [2, 3] {
        let late = node.answer(&node.launch(instance, generation)).await;
        let expected = if generation == 2 { Refusal::StaleGeneration } else { Refusal::Removed };
        assert_eq!(late, refused(expected), "generation {generation}");
    }
    assert_eq!(node.driver.launches(), 1);
    assert!(node.driver.seen().await.unwrap().is_empty(), "what was removed stays removed");
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forged_is_not_even_answered_and_what_is_late_is_refused() {
    let node = Node::start().await;
    let instance = Uuid::now_v7();
    let by_another = Signed::sign(&node.launch(instance, 1), &Key::generate()).unwrap();
    node.platform.hands_out_signed(by_another.clone());
    // Another's signature under the name of the one that is believed.
    node.platform.hands_out_signed(Signed { key_id: node.platform.signer.id(), ..by_another });
    let good = Signed::sign(&node.launch(instance, 1), &node.platform.signer).unwrap();
    let other = Signed::sign(&node.launch(Uuid::now_v7(), 1), &node.platform.signer).unwrap();
    node.platform.hands_out_signed(Signed { payload: other.payload, ..good });
    let elsewhere = Envelope { node_id: Uuid::now_v7(), ..node.launch(instance, 1) };
    node.platform.hands_out(&elsewhere);
    let expired = node.launch(instance, 1);
    node.ahead.store(600, Ordering::SeqCst);
    let answers = node.answers(&[&expired]).await;
    assert_eq!(
        answers,
        [(expired.task_id, refused(Refusal::Expired))],
        "only what the platform itself signed"
    );
    node.ahead.store(-600, Ordering::SeqCst);
    assert_eq!(node.answer(&node.launch(instance, 1)).await, refused(Refusal::Expired), "from the future");
    node.ahead.store(0, Ordering::SeqCst);
    assert_eq!(node.driver.launches(), 0);
    assert!(is_launched(&node.answer(&node.launch(instance, 1)).await));
    node.end().await;
}

/// A platform of a later release may ask for what this agent has never heard of.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_does_not_know_is_refused_and_nothing_of_it_is_done() {
    let node = Node::start().await;
    let instance = Uuid::now_v7();
    let unknown = Envelope { kind: "shell.run".to_owned(), ..node.launch(instance, 1) };
    assert_eq!(node.answer(&unknown).await, refused(Refusal::UnknownKind));
    let mut unreadable = node.launch(instance, 1);
    unreadable.input["workload"]["privileged"] = true.into();
    assert_eq!(node.answer(&unreadable).await, refused(Refusal::BadInput));
    assert_eq!((node.driver.launches(), journal(&node.agent).contains("begun")), (0, false));
    assert!(is_launched(&node.answer(&node.launch(instance, 1)).await), "and the next one is done");
    node.end().await;
}

/// A task that waits for its turn is handed out again whenever its lease ends. More copies than the agent does tasks at once
/// must not keep it from others, and the wait must not make the task late.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_behind_a_long_one_takes_one_place_and_does_not_grow_late() {
    let node = Node::start().await;
    let (busy, other) = (Uuid::now_v7(), Uuid::now_v7());
    node.driver.will(SimulatedFault::Hang);
    let long = node.launch(busy, 1);
    node.platform.hands_out(&long);
    node.wrote("begun", 1).await;
    let control = Control { instance_id: busy, generation: 1, action: ControlAction::Restart };
    let behind = node.platform.task(&Task::OciControl(control), busy, 1);
    for _ in 0..40 {
        node.platform.hands_out(&behind);
    }
    let quick = node.launch(other, 1);
    let answers = node.answers(&[&quick]).await;
    assert_eq!((answers[0].0, is_launched(&answers[0].1)), (quick.task_id, true), "the node is not deaf");
    node.ahead.store(600, Ordering::SeqCst);
    node.driver.release(1);
    let answers = node.platform.answers(3).await;
    assert_eq!(answers.len(), 3, "each is answered once: {answers:?}");
    assert!(is_launched(&answers[1].1) && answers[1].0 == long.task_id);
    assert_eq!(answers[2], (behind.task_id, Outcome::Succeeded { output: Output::Controlled }));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_does_not_wait_for_the_launch_that_it_makes_pointless() {
    let node = Node::start().await;
    let instance = Uuid::now_v7();
    node.driver.will(SimulatedFault::Hang);
    let (launch, removal) = (node.launch(instance, 1), node.removal(instance, 2));
    let answers = node.answers(&[&launch, &removal]).await;
    let of = |task: &Envelope| answers.iter().find(|(id, _)| *id == task.task_id).map(|(_, outcome)| outcome);
    let Some(Outcome::Failed { reason, .. }) = of(&launch) else { panic!("{answers:?}") };
    assert_eq!(*reason, StatusReason::TaskRejected);
    assert!(of(&removal).is_some_and(is_clean), "{answers:?}");
    assert_eq!(node.driver.launches(), 0);
    // A neighbour's launch that hangs is nobody's to overtake.
    node.driver.will(SimulatedFault::Hang);
    let neighbour = node.launch(Uuid::now_v7(), 1);
    node.platform.hands_out(&neighbour);
    assert!(is_clean(&node.answer(&node.removal(instance, 3)).await));
    node.driver.release(1);
    let answers = node.platform.answers(4).await;
    assert!(is_launched(&answers[3].1), "{answers:?}");
    node.end().await;
}
