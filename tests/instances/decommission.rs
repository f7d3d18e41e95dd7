//! Decommissioning: it pre-empts, it is one teardown however often it is asked for, and it ends only with the node's proof.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use node_protocol::{Envelope, Evidence, Generations, Outcome, PublicKey, Receipt, Refusal, Signed};
use serde_json::json;
use uuid::Uuid;

use super::nodes::watch;
use crate::http::{admin, project};
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;

#[tokio::test(flavor = "multi_thread")]
async fn decommissioning_twice_is_one_teardown_with_a_receipt_that_can_be_checked_elsewhere() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
    let receipt = project(&format!("/app-instances/{id}/receipt"));
    platform.http.get(&receipt).await.with(409);
    let first = platform.decommission(id).await;
    let again = platform.decommission(id).await;
    assert_eq!(first["status"], "decommissioned");
    assert_eq!(first["workflow"]["id"], again["workflow"]["id"], "one run");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(
        platform.events(id).await,
        ["requested", "deploying", "running", "decommission_requested", "decommissioned"]
    );
    let shown = platform.http.get(&receipt).await.with(200);
    let signed: Signed = serde_json::from_value(json!({
        "key_id": shown["key_id"], "payload": shown["payload"], "signature": shown["signature"],
    }))
    .unwrap();
    let signer = PublicKey::from_pem(shown["public_key"].as_str().unwrap()).unwrap();
    assert_eq!(signer.id(), signed.key_id);
    let receipt: Receipt = signed.open(&signer).unwrap();
    let evidence = receipt.evidence().expect("evidence that the node signed");
    assert!(evidence.is_clean() && evidence.instance_id == id, "{evidence:?}");
    assert_eq!(receipt.released.len(), 6, "{:?}", receipt.released);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decommissioning_pre_empts_a_deployment_that_hangs() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    assert_eq!(accepted["status"], "decommissioning");
    // The agent is still busy with the launch, which the removal makes pointless.
    let ended = platform.decommission(id).await;
    assert_eq!(ended["workflow"]["id"], accepted["workflow"]["id"]);
    assert_eq!(ended["status"], "decommissioned");
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert!(agent::Driver::seen(&driver).await.unwrap().is_empty(), "nothing is left on the node");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_remove_is_asked_again_when_an_operator_says_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    driver.will_keep(5);
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    let end = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(platform.story.settles(end).await, RunState::Paused);
    let stuck = platform.instance(id).await;
    assert_eq!(
        (&stuck["status"], &stuck["status_reason"]["code"]),
        (&json!("decommissioning"), &json!("task_rejected"))
    );
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    assert_eq!(access["endpoints"], json!([]), "it takes no more work");
    platform.http.post(&project(&format!("/workflows/{end}/retry")), json!({})).await.with(202);
    platform.succeeds(end).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    assert!(agent::Driver::seen(&driver).await.unwrap().is_empty(), "nothing is left on the node");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removal_left_behind_is_named_and_asked_for_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    driver.will_leave_behind(2);
    assert_eq!(platform.decommission(id).await["status"], "decommissioned", "and no operator was asked");
    let answers: Vec<(String, Option<String>)> = sqlx::query_as(
        "select status, result ->> 'message' from node_tasks where instance_id = $1 and kind = 'oci.remove' order by id",
    )
    .bind(id)
    .fetch_all(&platform.story.pool)
    .await
    .unwrap();
    let failed = ("failed".to_owned(), Some(format!("still there after the removal: gpuaas-{id}")));
    assert_eq!(answers, [failed.clone(), failed, ("succeeded".to_owned(), None)]);
    agent.end().await;
    platform.end().await;
}

/// Agents of earlier releases swear to what they left as well. It is no proof.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_something_left_behind_is_a_removal_that_is_still_to_be_done() {
    let platform = Platform::new().await;
    let node = Node::enrol(&platform.http, "gpu-1").await;
    let body = json!({
        "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 0, "cpu_cores": 2,
        "memory_gib": 2,
    });
    let allocation = id_of(&platform.http.post(&admin("/allocations"), body).await.with(201));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 0).await;
    let launch = node.takes("10s").await;
    let failed = Outcome::Failed { reason: StatusReason::Internal, message: "no".into() };
    node.answers(&launch, &failed).await.with(200);
    let leaves = |task: &Envelope| Evidence { remaining: vec!["gpuaas-x".into()], ..node.finds(task) };
    // The undo of the launch is not content with it, nor with a node that does not want to.
    let undo = node.takes("10s").await;
    node.answers(&undo, &node.swears(&leaves(&undo))).await.with(200);
    let undo = asked_again(&platform, &node).await;
    node.answers(&undo, &Outcome::Refused { refusal: Refusal::Expired }).await.with(200);
    let undo = asked_again(&platform, &node).await;
    node.answers(&undo, &node.swears(&node.finds(&undo))).await.with(200);
    settled(&platform, run, RunState::Compensated).await;
    // Neither is the end.
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    let removal = node.takes("10s").await;
    node.answers(&removal, &node.swears(&leaves(&removal))).await.with(200);
    // Nor is it content with what shows less than it asked for, or something else.
    let removal = node.takes("10s").await;
    let less = Evidence { generations: Generations::Only(1), ..node.finds(&removal) };
    node.answers(&removal, &node.swears(&less)).await.with(200);
    let removal = node.takes("10s").await;
    let other = Evidence { task_id: undo.task_id, ..node.finds(&removal) };
    node.answers(&removal, &node.swears(&other)).await.with(200);
    let removal = node.takes("10s").await;
    node.answers(&removal, &node.swears(&node.finds(&removal))).await.with(200);
    platform.succeeds(id_of(&accepted["workflow"])).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    platform.end().await;
}

/// An undo waits for its node by trying again, later each time.
async fn asked_again(platform: &Platform, node: &Node) -> Envelope {
    loop {
        if let Some(signed) = node.next("0s").await {
            return Envelope::open(&signed, &node.keyring, node.id).expect("a task");
        }
        platform.story.advance(Duration::from_secs(10)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn settled(platform: &Platform, run: Uuid, state: RunState) {
    while !platform.story.state(run).await.is_terminal() {
        platform.story.advance(Duration::from_secs(10)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(platform.story.state(run).await, state, "{}", platform.story.describe(run).await);
}

/// The task that the node of an instance is working on.
const IS_OUT: &str = "select exists (select from node_tasks where instance_id = $1 and status = 'handed_out'
    and kind = 'oci.launch') and $2::text[] is not null";

/// Handed out is not begun: killed in between, an agent would leave the fault to the next launch.
async fn hangs_at_its_node(platform: &Platform, driver: &Simulated, id: Uuid) {
    platform.story.until_true("the launch is with the node", IS_OUT, id, &[]).await;
    while driver.to_come() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_lost_in_the_middle_of_a_launch_keeps_no_decommissioning_from_its_end() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    hangs_at_its_node(&platform, &driver, id).await;
    let folder = agent.kill().await;
    platform.story.advance(Duration::from_secs(120)).await;
    watch(&platform).await;
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    settled(&platform, run, RunState::Cancelled).await;
    let open = admin("/teardown-debts");
    let debts = platform.http.get(&open).await.with(200);
    assert_eq!(debts["items"][0]["app_instance_id"], json!(id), "{debts:#}");
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.succeeds(id_of(&accepted["workflow"])).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    assert_eq!(platform.http.get(&open).await.with(200)["items"], json!([]), "the debt is paid");
    assert_eq!(driver.launches(), 0, "what was begun is not begun again");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_whose_node_was_lost_fails_with_a_debt_that_is_collected_when_it_returns() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    hangs_at_its_node(&platform, &driver, id).await;
    let (node, folder) = (agent.id, agent.kill().await);
    platform.story.advance(Duration::from_secs(31 * 60)).await;
    watch(&platform).await;
    settled(&platform, run, RunState::Compensated).await;
    let failed = platform.instance(id).await;
    let reason = &failed["status_reason"];
    assert_eq!(
        (&failed["status"], &reason["code"], &reason["kind"]),
        (&json!("failed"), &json!("node_unreachable"), &json!("blocked")),
        "nothing brings it back by itself"
    );
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "workload 1"];
    assert_eq!(platform.held(id).await, held, "what may be there keeps its place, and nobody else gets it");
    let leaks = platform.http.get(&admin("/resource-ledger/leaks")).await.with(200);
    assert_eq!(leaks["items"][0]["app_instance_id"], json!(id), "and nothing will have it again: {leaks:#}");
    platform.story.check_while_others_work().await;
    // Its first try at the removal fails, so it is asked once more.
    driver.will_keep(1);
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    let back = "select status = 'active' and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("the node is back", back, node, &[]).await;
    let paid = "select collected_at is not null from teardown_debts where instance_id = $1";
    loop {
        watch(&platform).await;
        if sqlx::query_scalar(paid).bind(id).fetch_one(&platform.story.pool).await.unwrap() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(platform.act(id, "retry", json!({})).await["status"], "running");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_is_in_debt_and_pays_when_it_returns() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let folder = agent.kill().await;
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    let end = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    platform.story.until(end, &[RunState::Waiting]).await;
    platform.story.advance(Duration::from_secs(601)).await;
    platform
        .story
        .until_true(
            "the debt is written down",
            "select exists (select from teardown_debts where instance_id = $1 and collected_at is null)
             and $2::text[] is not null",
            id,
            &[],
        )
        .await;
    let waiting = platform.instance(id).await;
    assert_eq!(waiting["status"], "decommissioning", "without proof nothing has ended");
    assert_eq!(
        (&waiting["status_reason"]["code"], &waiting["status_reason"]["kind"]),
        (&json!("node_unreachable"), &json!("waiting"))
    );
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.succeeds(end).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    let open: i64 = sqlx::query_scalar("select count(*) from teardown_debts where collected_at is null")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(open, 0, "the debt is paid");
    assert!(agent::Driver::seen(&driver).await.unwrap().is_empty());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_driver_than_the_nodes_swears_to_is_no_proof() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let enrolled_with = async |driver: &str| {
        let set = sqlx::query("update nodes set driver = $2 where id = $1").bind(agent.id).bind(driver);
        set.execute(&platform.story.pool).await.unwrap();
    };
    enrolled_with("docker").await;
    let path = project(&format!("/app-instances/{id}/decommission"));
    let accepted = platform.http.post(&path, json!({})).await.with(202);
    let end = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        platform.story.settles(end).await,
        RunState::Paused,
        "clean, but of an engine that is not the node's"
    );
    platform.http.get(&project(&format!("/app-instances/{id}/receipt"))).await.with(409);
    enrolled_with("simulated").await;
    platform.http.post(&project(&format!("/workflows/{end}/retry")), json!({})).await.with(202);
    platform.succeeds(end).await;
    agent.end().await;
    platform.end().await;
}
