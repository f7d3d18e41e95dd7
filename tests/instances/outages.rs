//! Nodes that fall silent in the middle of things: what runs there is not lost by it, and one instance that is in trouble keeps no
//! other from coming back.

use std::time::Duration;

use agent::Simulated;
use domain::StatusReason;
use engine::RunState;
use node_protocol::{Outcome, Output};
use serde_json::{Value, json};
use uuid::Uuid;

use super::drift::{compares, lost_and_found};
use super::nodes::watch;
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;

/// What one workload without GPUs holds.
pub(super) const HELD: [&str; 5] =
    ["cpu_core 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];

/// Changes something behind the platform's back.
pub(super) async fn meddle(platform: &Platform, statement: &'static str, id: Uuid) {
    sqlx::query(statement).bind(id).execute(&platform.story.pool).await.unwrap();
}

/// With room for two.
pub(super) async fn serving() -> (Platform, Node, Uuid) {
    serving_on(8).await
}

/// An instance that serves as its first generation, with one core.
async fn serving_on(cores: u32) -> (Platform, Node, Uuid) {
    let (platform, node, allocation) = machine(cores).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 0).await;
    node.launches(true).await;
    platform.succeeds(run).await;
    node.beats(1, runs(id, 1)).await.with(200);
    (platform, node, id)
}

/// A node by the words of the protocol alone, and all that is given of it.
async fn machine(cores: u32) -> (Platform, Node, Uuid) {
    let platform = Platform::new().await;
    let node = Node::enrol(&platform.http, "gpu-1").await;
    let body = json!({
        "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 0, "cpu_cores": cores,
        "memory_gib": 64,
    });
    let allocation = id_of(&platform.http.post(&admin("/allocations"), body).await.with(201));
    (platform, node, allocation)
}

/// The run of an upgrade to a version made for it.
pub(super) async fn upgrade(platform: &Platform, id: Uuid) -> Uuid {
    let next = platform.version(&profile(PORT, 30)).await;
    let path = project(&format!("/app-instances/{id}/upgrade"));
    let begun = platform.http.acting("operator").post(&path, json!({ "target_version": next })).await;
    id_of(&begun.with(202)["workflow"])
}

/// What a node reports of the one workload that it has.
pub(super) fn runs(id: Uuid, generation: i64) -> Value {
    json!([{
        "instance_id": id, "member": "main", "generation": generation, "state": "running", "health": "healthy",
        "usage": { "cpu_milliseconds": 1, "memory_bytes": 1 },
    }])
}

/// A run that would look again would be in the way of whoever acts next.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_from_before_a_change_tells_nothing_of_what_it_left() {
    let (platform, node, id) = serving().await;
    let run = upgrade(&platform, id).await;
    node.launches(true).await;
    let removal = node.takes("10s").await;
    node.answers(&removal, &node.swears(&node.finds(&removal))).await.with(200);
    platform.succeeds(run).await;
    compares(&platform).await;
    assert_eq!(looks(&platform).await, 0, "what it reported last is what ran before");
    node.beats(2, runs(id, 1)).await.with(200);
    compares(&platform).await;
    assert_eq!(looks(&platform).await, 1, "now it differs");
    for sequence in 3..=4 {
        node.beats(sequence, runs(id, 2)).await.with(200);
    }
    platform.story.advance(Duration::from_secs(2)).await;
    platform.story.quiet().await;
    platform.end().await;
}

async fn looks(platform: &Platform) -> i64 {
    sqlx::query_scalar("select count(*) from engine.run where kind = 'instance.reconcile'")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap()
}

/// A stop that the node took and whose answer was never heard of.
const UNANSWERED: &str = "select exists (select from node_tasks where run_id = $1 and status = 'failed')
    and $2::text[] is not null";

/// Neither the stop nor what came of it was heard of again, so that its lease runs out.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_was_undone_is_not_handed_out_again() {
    let (platform, node, id) = serving_on(1).await;
    let run = upgrade(&platform, id).await;
    assert_eq!(node.takes("10s").await.input["action"], "stop", "there is no room for both");
    let path = project(&format!("/workflows/{run}/cancel"));
    platform.http.acting("operator").post(&path, json!({})).await.with(202);
    let start = node.takes("10s").await;
    assert_eq!(start.input["action"], "start");
    node.answers(&start, &Outcome::Succeeded { output: Output::Controlled }).await.with(200);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    platform.story.advance(Duration::from_secs(61)).await;
    assert!(node.next("0s").await.is_none(), "what serves again would be stopped");
    // Where nobody cancels, the node has two minutes to answer.
    let run = upgrade(&platform, id).await;
    assert_eq!(node.takes("10s").await.input["action"], "stop");
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.story.advance(Duration::from_secs(121)).await;
    platform.story.until_true("the stop was given up", UNANSWERED, run, &[]).await;
    let start = node.takes("10s").await;
    assert_eq!(start.input["action"], "start");
    node.answers(&start, &Outcome::Succeeded { output: Output::Controlled }).await.with(200);
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["last_operation"]["reason"];
    assert_eq!(
        (&reason["code"], &reason["message"]),
        (&json!("node_unreachable"), &json!("the node did not answer within 120s"))
    );
    platform.end().await;
}

/// A deployment whose node took the launch and fell silent, and what its instance says of it.
async fn lost_in_a_launch() -> (Platform, Node, Uuid, Uuid) {
    let (platform, node, allocation) = machine(8).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 0).await;
    node.takes("10s").await;
    platform.story.advance(Duration::from_secs(120)).await;
    watch(&platform).await;
    let shown = platform.instance(id).await;
    let reason = &shown["status_reason"];
    assert_eq!(
        (&shown["status"], &reason["code"], &reason["kind"], &reason["message"]),
        (
            &json!("deploying"),
            &json!("node_unreachable"),
            &json!("waiting"),
            &json!("the node gpu-1 has not been heard of for 60 s")
        )
    );
    assert_eq!(shown["allowed_actions"], json!(["decommission"]));
    (platform, node, id, run)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_on_a_lost_node_says_so_until_that_returns() {
    let (platform, node, id, run) = lost_in_a_launch().await;
    node.beats(1, json!([])).await.with(200);
    watch(&platform).await;
    let shown = platform.instance(id).await;
    assert_eq!((&shown["status"], &shown["status_reason"]), (&json!("deploying"), &Value::Null));
    node.launches(true).await;
    platform.succeeds(run).await;
    assert_eq!(platform.events(id).await, ["requested", "deploying", "running"]);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_fails_after_its_node_returned_says_why_it_failed() {
    let (platform, node, id, run) = lost_in_a_launch().await;
    node.beats(1, json!([])).await.with(200);
    let launch = node.takes("10s").await;
    let message = "there is no such image".to_owned();
    let failed = Outcome::Failed { reason: StatusReason::ImagePullFailed, message };
    node.answers(&launch, &failed).await.with(200);
    let removal = node.takes("10s").await;
    node.answers(&removal, &node.swears(&node.finds(&removal))).await.with(200);
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "image_pull_failed");
    platform.end().await;
}

/// The removal that comes with a retry would meet what ran all the while.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_waits_for_a_node_that_is_away_and_what_ran_there_is_taken_back() {
    let (platform, node, id) = serving().await;
    platform.story.advance(Duration::from_secs(120)).await;
    watch(&platform).await;
    let shown = platform.instance(id).await;
    assert_eq!(shown["status_reason"]["code"], "node_unreachable");
    assert_eq!(shown["allowed_actions"], json!(["decommission"]), "what is refused is not offered");
    let listed = platform.http.get(&project("/app-instances?status=failed")).await.with(200);
    assert_eq!(listed["items"], json!([shown]));
    let path = project(&format!("/app-instances/{id}/retry"));
    let refused = platform.http.acting("operator").post(&path, json!({})).await.with(409);
    let details = &refused["details"];
    assert_eq!(
        (&refused["code"], &details["state"], &details["allowed_actions"]),
        (&json!("state_conflict"), &json!("failed"), &json!(["decommission"]))
    );
    let path = project(&format!("/app-instances/{id}/upgrade"));
    let elsewhere = json!({ "target_version": shown["version"] });
    let refused = platform.http.acting("operator").post(&path, elsewhere).await.with(409);
    assert_eq!(refused["details"]["allowed_actions"], json!(["decommission"]), "{refused:#}");
    let leaks = platform.http.get(&admin("/resource-ledger/leaks")).await.with(200);
    assert_eq!(leaks["items"], json!([]), "it has it again when its node returns");
    node.beats(2, runs(id, 1)).await.with(200);
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(platform.tasks(id).await, ["oci.launch"], "nothing was asked of the node meanwhile");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_cannot_be_read_keeps_no_other_from_coming_back_with_its_node() {
    let driver = Simulated::new();
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let odd = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let other = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let garble = "update app_instance_releases set profile = jsonb_build_object('was', profile) where instance_id = $1";
    meddle(&platform, garble, odd).await;
    let agent = lost_and_found(&platform, agent, &driver, || {}).await;
    assert_eq!(platform.instance(other).await["status"], "running");
    assert_eq!(platform.instance(odd).await["status"], "failed");
    let mend = "update app_instance_releases set profile = profile -> 'was' where instance_id = $1";
    meddle(&platform, mend, odd).await;
    watch(&platform).await;
    assert_eq!(platform.instance(odd).await["status"], "running", "and it comes back once it can be read");
    agent.end().await;
    platform.end().await;
}
