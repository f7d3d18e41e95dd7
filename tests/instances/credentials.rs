//! Secrets of a project in the platform's custody: sealed at rest, bound to an instance by id, handed to its node inside the
//! launch, and to people only wrapped.

use agent::Simulated;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;
use crate::support::wrapped::open;

const VALUE: &str = "hunter2-model-hub";

fn all() -> String {
    project("/access-credentials")
}

async fn keep(platform: &Platform, name: &str) -> Uuid {
    let body = json!({ "name": name, "value": VALUE });
    id_of(&platform.http.acting("project-admin").post(&all(), body).await.with(201))
}

/// A version that cannot start without a credential of the class `hub`.
async fn demanding(platform: &Platform) -> String {
    let classes = json!([{ "class": "hub", "env": "HUB_TOKEN", "required": true }]);
    let more = json!({ "runtime_profile": profile(PORT, 30), "runtime_requirements": { "credential_classes": classes } });
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

fn asked(number: &str, allocation: Uuid, credentials: &Value) -> Value {
    json!({
        "app_slug": "hello", "version": number, "display_name": "hello", "credentials": credentials,
        "placement_intent": { "allocation_id": allocation },
    })
}

/// Whether the text is anywhere in what the platform keeps readable.
async fn is_readable(platform: &Platform, text: &str) -> bool {
    sqlx::query_scalar(
        "select exists (select from access_credentials c where c::text like $1)
             or exists (select from node_tasks t where t::text like $1)
             or exists (select from audit a where a::text like $1)
             or exists (select from app_instances i where i::text like $1)
             or exists (select from idempotency k where convert_from(k.body, 'UTF8') like $1)",
    )
    .bind(format!("%{text}%"))
    .fetch_one(&platform.story.pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_custody_reaches_the_workload_and_is_readable_nowhere() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, id) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    let made = platform.create(asked(&number, allocation, &json!({ "hub": id }))).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    assert_eq!(driver.given(id_of(&made), "HUB_TOKEN").as_deref(), Some(VALUE));
    assert!(!is_readable(&platform, VALUE).await);
    let shown = platform.http.acting("operator").get(&all()).await.with(200);
    assert!(!shown.to_string().contains(VALUE) && shown["items"][0]["name"] == "model-hub", "{shown:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_required_must_be_named_and_be_the_projects_own() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, id) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    let strange = json!({ "hub": Uuid::now_v7(), "other": id });
    for (named, wrong) in [
        (json!({}), vec![("/credentials/hub", "is required")]),
        (
            strange,
            vec![
                ("/credentials/hub", "is not a credential of this project"),
                ("/credentials/other", "is not a class of credentials of this version"),
            ],
        ),
    ] {
        let refused = platform.create(asked(&number, allocation, &named)).await.with(400);
        let wrong: Vec<Value> = wrong
            .into_iter()
            .map(|(pointer, message)| json!({ "pointer": pointer, "message": message }))
            .collect();
        assert_eq!(refused["details"]["errors"], json!(wrong));
    }
    platform.http.acting("project-admin").post(&format!("{}/{id}/revoke", all()), json!({})).await.with(200);
    let late = platform.create(asked(&number, allocation, &json!({ "hub": id }))).await.with(400);
    assert_eq!(late["details"]["errors"][0]["pointer"], "/credentials/hub");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_is_revoked_before_the_run_looks_is_what_is_missing() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, id) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    let made = platform.create(asked(&number, allocation, &json!({ "hub": id }))).await.with(202);
    let instance = id_of(&made);
    platform.succeeds(id_of(&made["workflow"])).await;
    platform.http.acting("project-admin").post(&format!("{}/{id}/revoke", all()), json!({})).await.with(200);
    sqlx::query("update app_instances set status = 'failed', failed_during = 'deploying' where id = $1")
        .bind(instance)
        .execute(&platform.story.pool)
        .await
        .unwrap();
    let path = project(&format!("/app-instances/{instance}/retry"));
    let retried = platform.http.acting("operator").post(&path, json!({})).await.with(202);
    assert_eq!(platform.story.ends(id_of(&retried["workflow"])).await, RunState::Compensated);
    assert_eq!(platform.instance(instance).await["status_reason"]["code"], "credential_missing");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_handed_over_once_and_what_is_revoked_is_gone() {
    let platform = Platform::new().await;
    let admin = platform.http.acting("project-admin");
    let id = keep(&platform, "model-hub").await;
    let rotated =
        admin.post(&format!("{}/{id}/rotate", all()), json!({ "value": "hunter3" })).await.with(200);
    assert_eq!(rotated["version"], 2);
    let operator = platform.http.acting("operator").post(&format!("{}/{id}/deliver", all()), json!({})).await;
    assert_eq!(operator.with(403)["code"], "insufficient_permissions");
    let delivered = admin.post(&format!("{}/{id}/deliver", all()), json!({})).await.with(200);
    assert_eq!(open(&platform.http, &delivered).await["value"], "hunter3");
    let again = admin.post(&all(), json!({ "name": "model-hub", "value": "x" })).await.with(409);
    assert_eq!(again["code"], "already_exists");
    assert_eq!(admin.post(&format!("{}/{id}/revoke", all()), json!({})).await.with(200)["status"], "revoked");
    let late = admin.post(&format!("{}/{id}/deliver", all()), json!({})).await.with(409);
    assert_eq!(late["details"]["state"], "revoked");
    let kept: Option<String> = sqlx::query_scalar("select sealed from access_credentials where id = $1")
        .bind(id)
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(kept, None);
    platform.end().await;
}
