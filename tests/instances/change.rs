//! Upgrading and rolling back: what serves goes on serving until the new one is healthy, and a change that fails leaves
//! everything as it was.

use std::time::Duration;

use agent::{Docker, Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

const HELD: [&str; 6] = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];

fn to(number: &str) -> Value {
    json!({ "target_version": number })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_serves_the_new_version_and_a_rollback_the_old_one_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    let before = platform.instance(id).await;
    assert_eq!(before["allowed_actions"], json!(["upgrade", "rollback", "decommission"]));
    let upgraded = platform.act(id, "upgrade", to(&new)).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    assert_eq!((&upgraded["version"], &upgraded["status"]), (&json!(new), &json!("running")));
    assert_eq!(upgraded["last_operation"]["strategy"], "side_by_side");
    assert_ne!(upgraded["artifacts"], before["artifacts"]);
    assert_eq!(platform.held(id).await, HELD, "what the old one held is given back");
    let seen = agent::Driver::seen(&driver).await.unwrap();
    assert_eq!(seen.iter().map(|seen| seen.generation).collect::<Vec<_>>(), [2], "the old one is gone");
    let back = platform.act(id, "rollback", json!({})).await;
    assert_eq!((&back["version"], &back["artifacts"]), (&json!(old), &before["artifacts"]));
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(
        platform.events(id).await,
        [
            "requested",
            "deploying",
            "running",
            "upgrade_requested",
            "upgraded",
            "rollback_requested",
            "rolled_back"
        ]
    );
    let keys: i64 = sqlx::query_scalar("select count(*) from service_account_keys where revoked_at is null")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(keys, 1, "only what runs has a key");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upgrade_leaves_the_old_version_as_it_was_and_says_why() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    let (before, url) = (platform.instance(id).await, platform.url(id).await);
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let failed = platform.act(id, "upgrade", to(&new)).await;
    assert_eq!(failed["workflow"]["status"], "compensated");
    assert_eq!((&failed["status"], &failed["version"]), (&json!("running"), &json!(old)));
    assert_eq!((&failed["target_version"], &failed["status_reason"]), (&json!(null), &json!(null)));
    assert_eq!(failed["artifacts"], before["artifacts"]);
    let last = &failed["last_operation"];
    assert_eq!((&last["status"], &last["reason"]["code"]), (&json!("failed"), &json!("image_pull_failed")));
    assert_eq!(platform.url(id).await, url, "it is reached where it was");
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(platform.events(id).await[3..], ["upgrade_requested", "failed"]);
    let nowhere = platform.http.post(&project(&format!("/app-instances/{id}/rollback")), json!({})).await;
    assert_eq!(nowhere.with(409)["code"], "state_conflict", "nothing ran before");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_both_do_not_fit_the_old_one_stops_first_and_comes_back_if_the_new_one_fails() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 1).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ReadinessTimeout));
    let failed = platform.act(id, "upgrade", to(&new)).await;
    assert_eq!(failed["workflow"]["status"], "compensated", "{failed:#}");
    assert_eq!((&failed["status"], &failed["version"]), (&json!("running"), &json!(old)));
    let told: String = sqlx::query_scalar(
        "select data ->> 'strategy' from outbox where subject = $1 and type like '%upgrade_requested'",
    )
    .bind(id.to_string())
    .fetch_one(&platform.story.pool)
    .await
    .unwrap();
    assert_eq!(told, "stop_then_start", "it was said beforehand");
    let seen = agent::Driver::seen(&driver).await.unwrap();
    let states: Vec<_> = seen.iter().map(|seen| (seen.generation, seen.state)).collect();
    assert_eq!(states, [(1, node_protocol::WorkloadState::Running)], "the old one runs again");
    assert_eq!(platform.held(id).await, HELD);
    let upgraded = platform.act(id, "upgrade", to(&new)).await;
    assert_eq!(upgraded["last_operation"]["strategy"], "stop_then_start");
    assert_eq!(upgraded["version"], json!(new));
    assert_eq!(platform.held(id).await, HELD);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_to_what_serves_already_changes_nothing_and_says_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let same = platform.act(id, "upgrade", to(&number)).await;
    assert_eq!((&same["workflow"]["status"], &same["status"]), (&json!("succeeded"), &json!("running")));
    assert_eq!(same["last_operation"]["changes_nothing"], true);
    assert_eq!(driver.launches(), 1);
    agent.end().await;
    platform.end().await;
}

/// A node starts one of them, and the app fetches the others.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_images_another_one_is_a_change_whichever_it_is() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let slots = json!([{ "name": "assets" }, { "name": "runtime" }]);
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30), "artifacts": slots })).await;
    let [assets, others, runtime] =
        ["the assets", "other assets", "the runtime"].map(|words| shelve(words).to_string());
    platform.artifact_named(&number, "assets", &assets).await;
    platform.artifact_named(&number, "runtime", &runtime).await;
    platform.roll_out(&number).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let others_id = platform.artifact_named(&number, "assets", &others).await;
    let changed =
        platform.act(id, "upgrade", json!({ "target_version": number, "artifact_id": others_id })).await;
    assert_eq!(changed["workflow"]["status"], "succeeded", "{changed:#}");
    assert_ne!(changed["last_operation"]["changes_nothing"], true);
    let digests = [&changed["artifacts"][0]["digest"], &changed["artifacts"][1]["digest"]];
    assert_eq!(digests, [&json!(others), &json!(runtime)]);
    assert_eq!(driver.launches(), 2);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_action_names_the_run_that_is_under_way() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    driver.will(SimulatedFault::Hang);
    let path = project(&format!("/app-instances/{id}/upgrade"));
    let begun = platform.http.post(&path, to(&new)).await.with(202);
    let run = id_of(&begun["workflow"]);
    platform.story.until(run, &[RunState::Waiting]).await;
    let refused = platform.http.post(&path, to(&new)).await.with(409);
    assert_eq!(refused["code"], "operation_in_progress");
    assert_eq!(refused["details"]["workflow_id"], json!(run));
    driver.release(1);
    platform.succeeds(run).await;
    assert_eq!(platform.instance(id).await["version"], json!(new));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_instance_is_retried_and_never_doubled() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["allowed_actions"], json!(["retry", "decommission"]));
    let retried = platform.act(id, "retry", json!({})).await;
    assert_eq!((&retried["status"], &retried["status_reason"]), (&json!("running"), &json!(null)));
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(agent::Driver::seen(&driver).await.unwrap().len(), 1);
    agent.end().await;
    platform.end().await;
}

/// Asks every 50 ms until it is told to stop. Answers how often it was answered, and everything that was not as expected.
fn client(url: String, stop: CancellationToken) -> tokio::task::JoinHandle<(u32, Vec<String>)> {
    tokio::spawn(async move {
        let (mut answered, mut failures) = (0, Vec::new());
        while !stop.is_cancelled() {
            match reqwest::get(format!("{url}/index.html")).await {
                Ok(page) if page.status() == 200 => answered += 1,
                Ok(page) => failures.push(page.status().to_string()),
                Err(error) => failures.push(error.to_string()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (answered, failures)
    })
}

async fn page(platform: &Platform, id: Uuid) -> String {
    let page = reqwest::get(format!("{}/index.html", platform.url(id).await)).await.unwrap();
    page.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_upgrade_to_a_broken_image_is_not_noticed_and_a_rollback_needs_no_registry() {
    let engine = Engine::start().await;
    let mut platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let first = platform.real_version(&engine, &engine.stage.digest, &profile(PORT, 30)).await;
    let second = platform.real_version(&engine, &engine.image("again").unwrap(), &profile(PORT, 30)).await;
    // It listens on another port than the one that is asked.
    let broken = engine.image("broken").unwrap();
    let broken = platform.real_version(&engine, &broken, &profile(PORT + 1, 2)).await;
    let (id, run) = platform.deploy_version(allocation, &first, 0).await;
    platform.succeeds(run).await;
    assert_eq!(page(&platform, id).await, "welcome");

    let stop = CancellationToken::new();
    let asking = client(platform.url(id).await, stop.clone());
    let failed = platform.act(id, "upgrade", to(&broken)).await;
    stop.cancel();
    let (answered, failures) = asking.await.unwrap();
    assert_eq!(failed["workflow"]["status"], "compensated");
    assert_eq!(failed["last_operation"]["reason"]["code"], "readiness_timeout");
    assert_eq!(failures, Vec::<String>::new(), "the old one never stopped answering");
    assert!(answered > 10, "the client asked all the while: {answered}");

    let upgraded = platform.act(id, "upgrade", to(&second)).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    assert_eq!(page(&platform, id).await, "again");
    assert_eq!(engine.leftovers().len(), 2, "one container and its network: {:?}", engine.leftovers());
    platform.registry.as_mut().unwrap().stop();
    let back = platform.act(id, "rollback", json!({})).await;
    assert_eq!((&back["workflow"]["status"], &back["version"]), (&json!("succeeded"), &json!(first)));
    assert_eq!(page(&platform, id).await, "welcome");

    let (once, twice) = (platform.decommission(id).await, platform.decommission(id).await);
    assert_eq!(once["status"], "decommissioned");
    assert_eq!(once["workflow"]["id"], twice["workflow"]["id"]);
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of the instance remains");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
