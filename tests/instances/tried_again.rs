//! An ended run is tried again by itself, as its instance's own action would be: under a new generation, because the node has
//! buried the old one, and only where the instance allows it.

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};

async fn retry(platform: &Platform, run: Uuid) -> Value {
    let path = project(&format!("/workflows/{run}/retry?wait=30s"));
    platform.http.post(&path, json!({})).await.with(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_was_undone_can_be_tried_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    // It stands before it fails, so the undo has the node bury its generation.
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let again = retry(&platform, run).await;
    assert_eq!((&again["status"], &again["retry_of"]), (&json!("succeeded"), &json!(run)), "{again:#}");
    assert_eq!(platform.instance(id).await["status"], "running");
    let path = project(&format!("/workflows/{run}/retry"));
    let refused = platform.http.post(&path, json!({})).await.with(409);
    assert_eq!(refused["code"], "state_conflict", "what runs is not deployed again: {refused:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_undone_can_be_tried_again_and_tells_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let failed = platform.act(id, "upgrade", json!({ "target_version": new })).await;
    assert_eq!(failed["workflow"]["status"], "compensated");
    let again = retry(&platform, id_of(&failed["workflow"])).await;
    assert_eq!(again["status"], "succeeded", "{again:#}");
    assert_eq!(platform.instance(id).await["version"], json!(new));
    let told = platform.events(id).await;
    assert_eq!(told[3..], ["upgrade_requested", "failed", "upgrade_requested", "upgraded"]);
    agent.end().await;
    platform.end().await;
}

/// An instance that is to end and on which nobody acts: its end was cancelled while it waited for the deployment's undo.
pub(super) async fn whose_end_was_cancelled(
    platform: &Platform,
    driver: &Simulated,
    allocation: Uuid,
) -> Uuid {
    driver.will(SimulatedFault::Hang);
    let (id, deploy) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(deploy, &[RunState::Waiting]).await;
    let path = project(&format!("/app-instances/{id}/decommission"));
    let waiting = id_of(&platform.http.post(&path, json!({})).await.with(202)["workflow"]);
    platform.http.post(&project(&format!("/workflows/{waiting}/cancel")), json!({})).await.with(202);
    assert_eq!(platform.story.ends(waiting).await, RunState::Cancelled);
    driver.release(1);
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_end_was_cancelled_before_its_turn_can_still_be_ended() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = whose_end_was_cancelled(&platform, &driver, allocation).await;
    let ended = platform.decommission(id).await;
    assert_eq!(ended["status"], "decommissioned", "{ended:#}");
    agent.end().await;
    platform.end().await;
}
