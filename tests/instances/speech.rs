//! An instance has an identity of its own: with it it speaks of itself, and of nothing else. Where a version's health is a
//! heartbeat, its first word is what makes it run.

use std::time::Duration;

use agent::Simulated;
use axum::http::Method;
use clients::signing::SigningKey;
use engine::RunState;
use serde_json::{Value, json};
use store::service_account_keys;
use uuid::Uuid;

use crate::http::{Http, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};

const ASKS_FOR_HEALTH: &str =
    "select cause_detail ->> 'signal' = 'workload_healthy' and $2::text[] is not null
    from engine.run where id = $1";

/// How the one workload of the node is.
const ENDPOINT: &str = "select report #>> '{workloads,0,health}' = $2[1] from nodes where id = $1";

fn own(id: Uuid, path: &str) -> String {
    project(&format!("/app-instances/{id}{path}"))
}

/// A key as the workload of this generation holds one, and its caller.
async fn workload(platform: &Platform, id: Uuid, generation: i64) -> (Http, String) {
    let account: Uuid =
        sqlx::query_scalar("select operator_service_account_id from app_instances where id = $1")
            .bind(id)
            .fetch_one(&platform.story.pool)
            .await
            .unwrap();
    let key = SigningKey::generate().unwrap();
    let mut conn = platform.story.pool.acquire().await.unwrap();
    let public = key.public_key_pem().unwrap();
    service_account_keys::insert(&mut conn, account, key.id(), &public, false).await.unwrap();
    service_account_keys::set_generation(&mut conn, key.id(), generation).await.unwrap();
    let pem = key.private_key_pem().unwrap();
    let proof = json!({ "service_account_id": account, "key_id": key.id(), "private_key_pem": pem.expose() });
    let answer = platform.http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    (platform.http.bearing(answer["access_token"].as_str().unwrap()), key.id().to_owned())
}

/// A change that has come so far that the new workload's first word is awaited.
async fn awaited(platform: &Platform, id: Uuid, verb: &str, body: Value) -> Uuid {
    let path = own(id, &format!("/{verb}"));
    let begun = platform.http.acting("operator").post(&path, body).await.with(202);
    let run = id_of(&begun["workflow"]);
    platform.story.until_true("the new one is awaited", ASKS_FOR_HEALTH, run, &[]).await;
    run
}

fn speaks(grace_seconds: u32) -> Value {
    let mut profile = profile(PORT, grace_seconds);
    profile["health"] = json!({ "kind": "heartbeat", "grace_seconds": grace_seconds });
    profile
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_speaks_of_itself_and_of_nothing_else() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let (other, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let (app, _) = workload(&platform, id, 1).await;
    assert_eq!(app.get(&own(id, "")).await.with(200)["status"], "running");
    assert_eq!(app.post(&own(id, "/heartbeat"), json!({})).await.status, 204);
    let report =
        json!({ "event_type": "start_completed", "payload": { "port": 8080, "password": "hunter2" } });
    let told = app.post(&own(id, "/events"), report.clone()).await.with(202);
    // Sent again because the answer was lost, it is told once.
    let once = [("x-idempotency-key", "start-1")];
    let asked = async || app.send(Method::POST, &own(id, "/events"), &once, Some(report.clone())).await;
    let (first, again) = (asked().await, asked().await);
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(again.header("idempotent-replayed"), "true");
    workflows::sequencer::number_all(platform.story.engine.pool()).await.unwrap();
    let events = platform.http.acting("viewer").get(&own(id, "/events")).await.with(200);
    let reports = events["items"].as_array().unwrap().iter();
    let reports = reports.filter(|event| event["type"] == "apps.instance.reported");
    assert_eq!(reports.count(), 2, "{events:#}");
    let event =
        events["items"].as_array().unwrap().iter().find(|event| event["id"] == told["event_id"]).unwrap();
    assert_eq!(
        (&event["type"], &event["data"]["event_type"]),
        (&json!("apps.instance.reported"), &report["event_type"])
    );
    assert!(!event.to_string().contains("hunter2"), "{event:#}");
    for path in [own(other, ""), project("/app-instances"), project("/workflows"), own(id, "/logs")] {
        assert_eq!(app.get(&path).await.with(404)["code"], "project_not_found", "{path}");
    }
    assert_eq!(app.post(&own(other, "/heartbeat"), json!({})).await.status, 404);
    for who in ["operator", "admin"] {
        let refused = platform.http.acting(who).post(&own(id, "/heartbeat"), json!({})).await.with(403);
        assert_eq!(refused["code"], "insufficient_permissions", "nobody speaks for an instance");
    }
    let bad = app.post(&own(id, "/heartbeat"), json!({ "key_id": "no-such-key" })).await.with(400);
    assert_eq!(bad["details"]["errors"][0]["pointer"], "/key_id");
    platform.decommission(id).await;
    let late = app.post(&own(id, "/heartbeat"), json!({})).await.status.as_u16();
    assert!(late == 401 || late == 409, "what has ended says nothing any more: {late}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_health_is_a_heartbeat_each_workload_runs_when_it_has_spoken_itself() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &speaks(30), 1).await;
    platform.story.until_true("it waits for a word", ASKS_FOR_HEALTH, run, &[]).await;
    assert_eq!(platform.instance(id).await["status"], "deploying");
    let (old, old_key) = workload(&platform, id, 1).await;
    assert_eq!(old.post(&own(id, "/heartbeat"), json!({})).await.status, 204);
    platform.succeeds(run).await;
    platform.story.until_true("it speaks", ENDPOINT, agent.id, &["healthy"]).await;
    platform.story.advance(Duration::from_secs(30)).await;
    platform.story.until_true("it fell silent", ENDPOINT, agent.id, &["unhealthy"]).await;
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(old.post(&own(id, "/heartbeat"), json!({})).await.status, 204);
    platform.story.until_true("it speaks again", ENDPOINT, agent.id, &["healthy"]).await;
    assert_eq!(platform.instance(id).await["status_reason"], json!(null));

    let next = platform.version(&speaks(30)).await;
    let run = awaited(&platform, id, "upgrade", json!({ "target_version": next })).await;
    for beat in [json!({}), json!({ "key_id": old_key })] {
        assert_eq!(old.post(&own(id, "/heartbeat"), beat).await.status, 204);
    }
    platform.story.until_true("the old one does not speak for it", ASKS_FOR_HEALTH, run, &[]).await;
    assert_eq!(platform.instance(id).await["status"], "upgrading");
    let well = json!({ "event_type": "healthy", "payload": {} });
    old.post(&own(id, "/events"), well.clone()).await.with(202);
    platform.story.until_true("nor does its event", ASKS_FOR_HEALTH, run, &[]).await;
    // Whose word it is, the key says that the token was made with.
    let (new, new_key) = workload(&platform, id, 2).await;
    let beat = json!({ "key_id": new_key });
    let of_another = old.post(&own(id, "/heartbeat"), beat).await.with(400);
    assert_eq!(of_another["details"]["errors"][0]["pointer"], "/key_id");
    assert_eq!(new.post(&own(id, "/heartbeat"), json!({})).await.status, 204);
    platform.succeeds(run).await;
    assert_eq!(platform.instance(id).await["version"], next);

    let run = awaited(&platform, id, "rollback", json!({})).await;
    let (newest, _) = workload(&platform, id, 3).await;
    newest.post(&own(id, "/events"), well.clone()).await.with(202);
    platform.succeeds(run).await;

    // The token of one that was taken away again outlives it, and does not speak for what serves.
    let run = awaited(&platform, id, "upgrade", json!({ "target_version": next })).await;
    let (undone, _) = workload(&platform, id, 4).await;
    let path = project(&format!("/workflows/{run}/cancel"));
    platform.http.acting("operator").post(&path, json!({})).await.with(202);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    for (path, said) in [("/heartbeat", json!({})), ("/events", well)] {
        let refused = undone.post(&own(id, path), said).await.with(409);
        assert_eq!(
            (&refused["code"], &refused["details"]["state"]),
            (&json!("state_conflict"), &json!("revoked"))
        );
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_never_speaks_is_taken_away_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &speaks(30), 1).await;
    platform.story.until_true("it waits for a word", ASKS_FOR_HEALTH, run, &[]).await;
    platform.story.advance(Duration::from_secs(200)).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
