//! A workload may take hours to serve. Nobody waits for whoever asks it meanwhile: neither those who take the instance away, nor
//! the other instances of its node.

use agent::{Driver, Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use node_protocol::{
    AuthorizedKeys, Control, ControlAction, Envelope, HealthProbe, Outcome, Output, Probe, ProbeKind,
    ReadLogs, Refusal, Task, Workload,
};
use serde_json::json;
use uuid::Uuid;

use super::agent::journal;
use super::imposed::{Node, is_clean, is_launched, refused};
use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

/// A day, as much as a manifest may ask for.
const LONGEST: u32 = 86_400;

/// More than an agent does of one kind at once.
const MANY: usize = 40;

fn probe(node: &Node, instance: Uuid, grace_seconds: u32) -> Envelope {
    let probe = Probe {
        kind: ProbeKind::Http,
        path: "/".into(),
        port: PORT,
        interval_seconds: 1,
        timeout_seconds: 1,
        grace_seconds,
    };
    let task = Task::DiagHealthProbe(HealthProbe {
        instance_id: instance,
        member: Workload::MAIN.to_owned(),
        generation: 1,
        probe: Some(probe),
        requests: vec![],
    });
    node.platform.task(&task, instance, 1)
}

/// Launched, and not serving.
async fn ill(node: &Node) -> Uuid {
    let instance = Uuid::now_v7();
    node.driver.falls_ill(instance, true);
    assert!(is_launched(&node.answer(&node.launch(instance, 1)).await));
    instance
}

fn failed(outcome: &Outcome) -> (StatusReason, &str) {
    match outcome {
        Outcome::Failed { reason, message } => (*reason, message),
        other => panic!("it should have failed: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_a_workload_for_hours_keeps_nobody_from_stopping_or_removing_it() {
    let node = Node::start().await;
    let instance = ill(&node).await;
    let asking = probe(&node, instance, LONGEST);
    node.platform.hands_out(&asking);
    node.wrote("begun", 2).await;
    let control = Control { instance_id: instance, generation: 1, action: ControlAction::Stop };
    let stop = node.platform.task(&Task::OciControl(control), instance, 1);
    let stopped = node.answers(&[&stop]).await;
    assert_eq!(stopped, [(stop.task_id, Outcome::Succeeded { output: Output::Controlled })]);
    let removal = node.removal(instance, 2);
    node.platform.hands_out(&removal);
    let answers = node.platform.answers(4).await;
    let of = |task: &Envelope| answers.iter().find(|(id, _)| *id == task.task_id).map(|(_, outcome)| outcome);
    assert!(of(&removal).is_some_and(is_clean), "{answers:?}");
    assert_eq!(of(&asking).map(|outcome| failed(outcome).0), Some(StatusReason::TaskRejected));
    let late = node.answer(&probe(&node, instance, LONGEST)).await;
    assert_eq!(late, refused(Refusal::StaleGeneration), "what is gone is not asked");
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_workloads_do_not_serve_their_node_is_there_for_all_others() {
    let node = Node::start().await;
    let mut asked = Vec::new();
    for _ in 0..MANY {
        let instance = ill(&node).await;
        node.platform.hands_out(&probe(&node, instance, LONGEST));
        asked.push(instance);
    }
    // As many again that never come.
    for _ in 0..MANY {
        node.driver.will(SimulatedFault::Hang);
        node.platform.hands_out(&node.launch(Uuid::now_v7(), 1));
    }
    let logs = ReadLogs { instance_id: asked[0], member: Workload::MAIN.to_owned(), tail: 5, since: None };
    let logs = node.platform.task(&Task::DiagLogs(logs), asked[0], 1);
    let keys = AuthorizedKeys { user: AuthorizedKeys::USER.to_owned(), keys: vec![] };
    let keys = node.platform.task(&Task::SshInstallAuthorizedKeys(keys), node.platform.node, 1);
    let answers = node.answers(&[&logs, &keys]).await;
    let of = |task: &Envelope| answers.iter().find(|(id, _)| *id == task.task_id).map(|(_, outcome)| outcome);
    assert!(matches!(of(&logs), Some(Outcome::Succeeded { output: Output::Logs { .. } })), "{answers:?}");
    assert!(of(&keys).is_some(), "{answers:?}");
    let before = node.platform.answers(0).await.len();
    let removals: Vec<Envelope> = asked.into_iter().map(|instance| node.removal(instance, 2)).collect();
    for removal in &removals {
        node.platform.hands_out(removal);
    }
    let answers = node.platform.answers(before + 2 * MANY).await.split_off(before);
    let clean = answers.iter().filter(|(_, outcome)| is_clean(outcome)).count();
    assert_eq!(clean, MANY, "and the probes ended: {answers:?}");
    node.end().await;
}

/// A workload may write its whole environment when it fails, and what a task ended with is told to every webhook.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_workload_wrote_is_not_in_the_reason_why_it_failed() {
    let node = Node::start().await;
    let instance = ill(&node).await;
    let (lines, _) = node.driver.logs(instance, Workload::MAIN, 5, None).await.unwrap().into_parts();
    let outcome = node.answer(&probe(&node, instance, 0)).await;
    let (reason, message) = failed(&outcome);
    assert_eq!(reason, StatusReason::ReadinessTimeout);
    assert!(!lines.is_empty() && lines.iter().all(|line| !message.contains(&line.text)), "{message}");
    assert!(message.contains("gpuaas logs"), "it says where to look: {message}");
    node.end().await;
}

/// Everything the instance held is given back, though its workload was to be asked for a day.
async fn ends_while_it_is_asked(
    platform: &Platform,
    driver: &Simulated,
    (agent, allocation): &(RunningAgent, Uuid),
    cancel: bool,
) {
    let tasks = journal(agent).matches("\"begun\"").count();
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(*allocation, &profile(PORT, LONGEST), 1).await;
    driver.falls_ill(id, true);
    driver.release(1);
    platform.story.until_true("it is asked", ASKED, id, &[]).await;
    while journal(agent).matches("\"begun\"").count() < tasks + 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    if cancel {
        platform.http.post(&project(&format!("/workflows/{run}/cancel")), json!({})).await.with(202);
        assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    } else {
        platform.decommission(id).await;
    }
    assert_eq!(platform.held(id).await, Vec::<String>::new());
}

const ASKED: &str = "select $2::text[] is not null and exists (select from node_tasks
    where instance_id = $1 and kind = 'diag.health_probe' and status = 'handed_out')";

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_does_not_serve_yet_can_be_cancelled_and_decommissioned() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let node = platform.node("gpu-1", &driver, 4).await;
    for cancel in [true, false] {
        ends_while_it_is_asked(&platform, &driver, &node, cancel).await;
    }
    node.0.end().await;
    platform.end().await;
}
