//! Secrets of a project in the platform's custody: sealed at rest, bound to an instance by id, handed to its node inside the
//! launch, and to people only wrapped.

use agent::{Driver, Simulated, SimulatedFault};
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;
use crate::support::wrapped::{open, opens};

const VALUE: &str = "hunter2-model-hub";

fn all() -> String {
    project("/access-credentials")
}

async fn keep(platform: &Platform, name: &str) -> Uuid {
    let body = json!({ "name": name, "value": VALUE });
    id_of(&platform.http.acting("project-admin").post(&all(), body).await.with(201))
}

async fn revoke(platform: &Platform, id: Uuid) {
    platform.http.acting("project-admin").post(&format!("{}/{id}/revoke", all()), json!({})).await.with(200);
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
    revoke(&platform, id).await;
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
    revoke(&platform, id).await;
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
async fn a_credential_that_is_revoked_after_the_run_looked_is_what_was_missing() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, credential) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    // Nothing is placed while the allocation is held, so the run stands after it has looked.
    let mut hold = platform.story.pool.begin().await.unwrap();
    sqlx::query("select 1 from allocations where id = $1 for no key update")
        .bind(allocation)
        .execute(&mut *hold)
        .await
        .unwrap();
    let made = platform.create(asked(&number, allocation, &json!({ "hub": credential }))).await.with(202);
    let (id, run) = (id_of(&made), id_of(&made["workflow"]));
    let looked = "select exists (select 1 from engine.step where run_id = $1 and name = $2[1] and state = 'succeeded')";
    platform.story.until_true("the run has looked", looked, run, &["check_entitlement"]).await;
    revoke(&platform, credential).await;
    hold.rollback().await.unwrap();
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(
        (&reason["code"], &reason["message"]),
        (&json!("credential_missing"), &json!("the credential hub was revoked"))
    );
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

#[tokio::test(flavor = "multi_thread")]
async fn what_was_delivered_and_not_fetched_opens_no_more_once_the_secret_is_replaced_or_revoked() {
    let platform = Platform::new().await;
    let admin = platform.http.acting("project-admin");
    let (id, other) = (keep(&platform, "model-hub").await, keep(&platform, "other").await);
    let deliver = async |id: Uuid| admin.post(&format!("{}/{id}/deliver", all()), json!({})).await.with(200);
    let untouched = deliver(other).await;
    let before = deliver(id).await;
    admin.post(&format!("{}/{id}/rotate", all()), json!({ "value": "hunter3" })).await.with(200);
    assert!(
        !opens(&platform.http, &before).await,
        "the old secret leaves the platform after it was replaced"
    );
    let after = deliver(id).await;
    revoke(&platform, id).await;
    assert!(!opens(&platform.http, &after).await, "a revoked secret leaves the platform");
    assert!(opens(&platform.http, &untouched).await, "others are delivered as before");
    platform.end().await;
}

const LAUNCH_IS: &str =
    "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_withdraws_every_launch_that_would_carry_the_secret_and_no_other() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = demanding(&platform).await;
    let (bad, good) = (keep(&platform, "model-hub").await, keep(&platform, "other").await);
    // The node is away, so the launches lie there with the secrets inside.
    platform.door.cut(true);
    let folder = agent.kill().await;
    let launch = async |credential: Uuid| {
        let made = platform.create(asked(&number, allocation, &json!({ "hub": credential }))).await.with(202);
        let (id, run) = (id_of(&made), id_of(&made["workflow"]));
        platform.story.until_true("the task is written", LAUNCH_IS, run, &["queued"]).await;
        (id, run)
    };
    let ((id, run), (_, other)) = (launch(bad).await, launch(good).await);
    revoke(&platform, bad).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(reason["code"], "credential_missing", "{reason:#}");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    platform.door.cut(false);
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.succeeds(other).await;
    assert_eq!((driver.launches(), driver.given(id, "HUB_TOKEN")), (1, None));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_turns_back_a_launch_that_a_node_is_at_work_on() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, credential) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    driver.will(SimulatedFault::Hang);
    let made = platform.create(asked(&number, allocation, &json!({ "hub": credential }))).await.with(202);
    let (id, run) = (id_of(&made), id_of(&made["workflow"]));
    platform.story.until_true("the node has the task", LAUNCH_IS, run, &["handed_out"]).await;
    revoke(&platform, credential).await;
    driver.release(1);
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "credential_missing");
    assert_eq!(driver.seen().await.unwrap(), vec![], "what was started with it is taken away");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_takes_its_turn_after_a_revocation_that_is_under_way() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (number, credential) = (demanding(&platform).await, keep(&platform, "model-hub").await);
    let mut revocation = platform.story.pool.begin().await.unwrap();
    sqlx::query("update access_credentials set sealed = null, revoked_at = engine.now() where id = $1")
        .bind(credential)
        .execute(&mut *revocation)
        .await
        .unwrap();
    let made = platform.create(asked(&number, allocation, &json!({ "hub": credential }))).await.with(202);
    let (id, run) = (id_of(&made), id_of(&made["workflow"]));
    let came_to_it = "select exists (select 1 from node_tasks where run_id = $1 and kind = any ($2))
        or exists (select 1 from pg_locks where locktype = 'tuple' and relation = 'access_credentials'::regclass
            and database = (select oid from pg_database where datname = current_database()))";
    platform.story.until_true("the run comes to its launch", came_to_it, run, &["oci.launch"]).await;
    revocation.commit().await.unwrap();
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!((driver.launches(), platform.tasks(id).await), (0, vec![]), "no node ever heard of it");
    agent.end().await;
    platform.end().await;
}
