//! Decommissioning: it pre-empts, it is one teardown however often it is asked for, and it ends only with the node's proof.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use engine::RunState;
use node_protocol::{PublicKey, Receipt, Signed};
use serde_json::json;

use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

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
    // The agent is still busy with the launch; the removal takes its turn after it.
    driver.release(1);
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
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
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
    platform.http.post(&project(&format!("/workflows/{end}/retry")), json!({})).await.with(202);
    platform.succeeds(end).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    assert!(agent::Driver::seen(&driver).await.unwrap().is_empty(), "nothing is left on the node");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_is_in_debt_and_pays_when_it_returns() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
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
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
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
