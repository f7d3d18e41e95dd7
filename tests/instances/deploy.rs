//! Deploying: an instance runs only when its workload serves, and one that does not come to run leaves nothing.

use agent::{Docker, Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::json;

use crate::http::project;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, profile};

fn digest() -> String {
    format!("sha256:{}", "a".repeat(64))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_placed_launched_found_healthy_and_running() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &digest(), &profile(PORT, 30), 2).await;
    platform.succeeds(run).await;
    let instance = platform.instance(id).await;
    assert_eq!((&instance["status"], &instance["status_reason"]), (&json!("running"), &json!(null)));
    assert_eq!(instance["artifacts"][0]["digest"], digest());
    assert_eq!(instance["tenant_boundary_mode"], "project_isolated");
    assert_eq!(platform.held(id).await, ["cpu_core 1", "gpu 2", "memory_gib 1", "port 1", "workload 1"]);
    assert_eq!(platform.events(id).await, ["deploying", "running"]);
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    assert_eq!(access["endpoints"][0]["private_address"], "127.0.0.1:30000");
    assert_eq!(driver.launches(), 1);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_fails_on_the_node_says_why_and_leaves_nothing() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (id, run) = platform.deploy(allocation, &digest(), &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let instance = platform.instance(id).await;
    assert_eq!(instance["status"], "failed");
    let reason = &instance["status_reason"];
    assert_eq!((&reason["code"], &reason["kind"]), (&json!("image_pull_failed"), &json!("blocked")));
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(platform.events(id).await, ["deploying", "failed"]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_vanishes_before_it_serves_is_a_readiness_timeout() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Vanish);
    let (id, run) = platform.deploy(allocation, &digest(), &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_only_those_that_fit_run() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(platform.deploy(allocation, &digest(), &profile(PORT, 30), 2).await);
    }
    let mut ends = Vec::new();
    for (_, run) in &asked {
        ends.push(platform.story.ends(*run).await);
    }
    assert_eq!(ends.iter().filter(|end| **end == RunState::Succeeded).count(), 2, "{ends:?}");
    for ((id, _), _) in asked.iter().zip(&ends).filter(|(_, end)| **end != RunState::Succeeded) {
        let instance = platform.instance(*id).await;
        assert_eq!(instance["status_reason"]["code"], "insufficient_capacity");
        let message = instance["status_reason"]["message"].as_str().unwrap();
        assert!(message.contains("free_gpu_count: 0 where at least 2 is required"), "{message}");
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_container_is_deployed_answers_and_is_decommissioned_without_a_trace() {
    let Some(engine) = Engine::start().await else { return };
    let platform = Platform::new().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let (id, run) = platform.deploy(allocation, &engine.stage.digest, &profile(PORT, 30), 0).await;
    platform.succeeds(run).await;
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    let url = format!("{}/index.html", access["endpoints"][0]["url"].as_str().unwrap());
    assert_eq!(reqwest::get(&url).await.unwrap().text().await.unwrap(), "welcome");
    assert_eq!(engine.leftovers().len(), 2, "a container and a network: {:?}", engine.leftovers());
    let ended = platform.decommission(id).await;
    assert_eq!(
        (&ended["status"], &ended["workflow"]["status"]),
        (&json!("decommissioned"), &json!("succeeded"))
    );
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_container_that_does_not_serve_is_taken_away_again() {
    let Some(engine) = Engine::start().await else { return };
    let platform = Platform::new().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    // It listens on another port than the one that is asked.
    let (id, run) = platform.deploy(allocation, &engine.stage.digest, &profile(PORT + 1, 1), 0).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
