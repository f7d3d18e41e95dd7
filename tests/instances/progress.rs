//! A pull that takes long is no silence: how far it is stands at the step that waits for it, and whoever follows the run is told.
//! What does not come to its end says what was waited for.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use axum::body::Body;
use axum::http::Request;
use engine::RunState;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

const MIB: u64 = 1 << 20;

fn launch(run: &Value) -> Value {
    let steps = run["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["name"] == "workload_launched").expect("the wait for the launch").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_pull_is_stands_at_the_step_that_waits_for_it_and_whoever_follows_is_told() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::HangAfter(120 * MIB, 480 * MIB));
    let (_, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    let path = project(&format!("/workflows/{run}"));
    let asked = Request::get(format!("{path}/stream")).body(Body::empty()).unwrap();
    let mut stream = platform.http.open(asked).await.into_body().into_data_stream();
    let (mut text, expected) = (
        String::new(),
        json!({
            "phase": "pulling", "bytes_done": 120 * MIB, "bytes_total": 480 * MIB,
        }),
    );
    let told = loop {
        text += str::from_utf8(&stream.next().await.expect("the run goes on").unwrap()).unwrap();
        let steps =
            text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let mut steps = steps.filter(|step| step["name"] == "workload_launched");
        if let Some(step) = steps.find(|step| !step["progress"].is_null()) {
            break step["progress"].clone();
        }
    };
    assert_eq!(told, expected);
    let shown = platform.http.get(&path).await.with(200);
    assert_eq!(launch(&shown)["progress"], expected);
    let others = shown["steps"].as_array().unwrap().iter().filter(|step| !step["progress"].is_null());
    assert_eq!(others.count(), 1, "no other step waits for it");

    driver.release(1);
    platform.succeeds(run).await;
    let shown = platform.http.get(&path).await.with(200);
    assert_eq!(launch(&shown)["progress"], Value::Null, "what is over is not under way");
    agent.end().await;
    platform.end().await;
}

const IS_TOLD: &str =
    "select exists (select 1 from node_tasks where run_id = $1 and progress ->> 'phase' = $2[1])";

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_does_not_end_in_time_is_told_as_one_with_how_far_it_came() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::HangAfter(120 * MIB, 480 * MIB));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until_true("the node pulls", IS_TOLD, run, &["pulling"]).await;
    platform.story.advance(Duration::from_secs(31 * 60)).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(reason["code"], "image_pull_failed", "{reason:#}");
    assert!(reason["message"].as_str().unwrap().contains("125829120 of 503316480 bytes"), "{reason:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_of_which_nothing_was_heard_in_time_is_the_nodes_silence() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.story.advance(Duration::from_secs(31 * 60)).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(reason["code"], "node_unreachable", "{reason:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_deployment_was_cancelled_says_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}/cancel"));
    platform.http.acting("operator").post(&path, json!({})).await.with(202);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(reason["code"], "internal", "{reason:#}");
    assert!(reason["message"].as_str().unwrap().contains("was cancelled"), "{reason:#}");
    agent.end().await;
    platform.end().await;
}
