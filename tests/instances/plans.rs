//! A plan says what the run does: under which policy, and whether anything happens at all.

use agent::Simulated;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

async fn planned(platform: &Platform, id: Uuid, asked: Value) -> Value {
    let path = project(&format!("/app-instances/{id}/plan"));
    platform.http.acting("operator").post(&path, asked).await.with(200)
}

fn upgrade(number: &str) -> Value {
    json!({ "action": "upgrade", "target_version": number })
}

fn has_times(plan: &Value) -> bool {
    let steps = plan["steps"].as_array().unwrap();
    plan["expected_seconds"].is_number() || steps.iter().any(|step| step["expected_seconds"].is_number())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_plan_shows_the_policy_that_the_action_is_held_to() {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    let narrow = json!({ "enabled": true, "policy_overrides": { "max_gpu_count": 3 } });
    platform.http.acting("project-admin").put(&project("/apps/entitlements/hello"), narrow).await.with(200);
    let body = json!({ "app_slug": "hello", "version": new, "display_name": "hello" });
    let policy = platform.http.post(&project("/app-instances/plan"), body).await.with(200)["policy"].clone();
    assert_eq!(policy["max_gpu_count"], 3);
    assert_eq!(planned(&platform, id, upgrade(&new)).await["policy"], policy);
    platform.act(id, "upgrade", json!({ "target_version": new })).await;
    assert_eq!(planned(&platform, id, json!({ "action": "rollback" })).await["policy"], policy);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_to_end_what_has_ended_changes_nothing() {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let other = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let ended = platform.decommission(id).await;
    let decommission = json!({ "action": "decommission" });
    let plan = planned(&platform, id, decommission.clone()).await;
    assert_eq!((&plan["changes_nothing"], has_times(&plan)), (&json!(true), false), "{plan:#}");
    assert_eq!(platform.decommission(id).await["workflow"], ended["workflow"]);
    let plan = planned(&platform, other, decommission).await;
    assert_eq!((&plan["changes_nothing"], has_times(&plan)), (&json!(false), true), "{plan:#}");
    agent.end().await;
    platform.end().await;
}

/// It is where it is to be already, so no place is looked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_to_what_serves_already_needs_neither_room_nor_an_open_node() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 1).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let same = async || {
        let plan = planned(&platform, id, upgrade(&number)).await;
        let told = (plan["strategy"].clone(), plan["changes_nothing"].clone(), has_times(&plan));
        assert_eq!(told, (json!("side_by_side"), json!(true), false), "{plan:#}");
        assert_eq!(plan["effective"]["version"], json!(number));
        let done = platform.act(id, "upgrade", json!({ "target_version": number })).await;
        assert_eq!(done["workflow"]["status"], "succeeded", "{done:#}");
        assert_eq!(done["last_operation"]["changes_nothing"], true);
    };
    same().await;
    platform.http.post(&admin(&format!("/nodes/{}/drain", agent.id)), json!({})).await.with(200);
    same().await;
    let told: Vec<String> = sqlx::query_scalar(
        "select data ->> 'strategy' from outbox where subject = $1 and type like '%upgrade_requested'",
    )
    .bind(id.to_string())
    .fetch_all(&platform.story.pool)
    .await
    .unwrap();
    assert_eq!(told, ["side_by_side", "side_by_side"], "nothing is stopped");
    assert_eq!(driver.launches(), 1);
    agent.end().await;
    platform.end().await;
}
