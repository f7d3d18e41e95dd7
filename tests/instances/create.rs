//! Asking for an instance: the server decides and answers every value, or says everything that stands in the way.

use agent::Simulated;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::catalog::acts;
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::{EXAMPLE, NEXT_DOOR};
use crate::support::registry::shelve;

fn asking(number: &str) -> Value {
    json!({ "app_slug": "hello", "version": number, "display_name": "First try" })
}

fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Every pointer of a refusal, sorted.
fn pointers(refused: &Value) -> Vec<String> {
    let errors = refused["details"]["errors"].as_array().expect("a list of problems");
    let mut all: Vec<String> = errors.iter().map(|e| e["pointer"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

/// A version with a schema and bounds of its own.
async fn particular(platform: &Platform) -> String {
    let mut profile = profile(PORT, 30);
    profile["resources"] =
        json!({ "cpu_cores": { "default": 2, "max": 4 }, "memory_gib": { "min": 2, "default": 3 } });
    profile["launch_parameters"] = json!([{ "name": "greeting", "env": "HELLO_GREETING" }]);
    let greeting = json!({ "type": "string", "minLength": 1, "default": "Hello" });
    let number = platform
        .draft(json!({
            "runtime_profile": profile,
            "config_schema": {
                "type": "object", "additionalProperties": false, "properties": { "greeting": greeting },
            },
        }))
        .await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_the_server_decides_and_answers() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = particular(&platform).await;
    let answer = platform.create(asking(&number)).await;
    let location = answer.header("location").to_owned();
    let made = answer.with(202);
    assert_eq!(location, made["workflow"]["href"]);
    assert_eq!(made["workflow"]["kind"], "instance.deploy");
    assert_eq!(made["status"], "requested");
    assert_eq!(made["config"], json!({ "greeting": "Hello" }));
    let resources = json!({ "gpu_count": 0, "cpu_cores": 2, "memory_gib": 3, "host_port": null });
    assert_eq!(made["resources"], resources);
    assert_eq!(made["placement_intent"], json!({ "allocation_id": allocation }));
    assert_eq!(
        (&made["operating_mode"], &made["control_plane_scope"], &made["runtime_backend"]),
        (&json!("tenant_dedicated"), &json!("project"), &json!("launchable_oci"))
    );
    assert_eq!(made["artifacts"][0]["digest"], shelve(&number).to_string());
    platform.succeeds(id_of(&made["workflow"])).await;
    let input: Value = sqlx::query_scalar("select input from node_tasks where kind = 'oci.launch'")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(input["workload"]["env"]["HELLO_GREETING"], "Hello", "the config reaches the container");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_wrong_with_the_values_is_told_at_once() {
    let platform = Platform::new().await;
    let number = particular(&platform).await;
    let wrong = json!({
        "config": { "greeting": "", "colour": "red" }, "placement_intent": { "rack": 7 },
        "resources": { "cpu_cores": 9, "memory_gib": 1 }, "packages": ["numpy"], "variant": "cuda",
        "credentials": { "hub": Uuid::nil() },
    });
    let refused = platform.create(with(asking(&number), wrong)).await.with(400);
    assert_eq!(refused["code"], "validation_error");
    assert_eq!(
        pointers(&refused),
        [
            "/config/colour",
            "/config/greeting",
            "/credentials/hub",
            "/packages",
            "/placement_intent/allocation_id",
            "/placement_intent/rack",
            "/resources/cpu_cores",
            "/resources/memory_gib",
            "/variant",
        ]
    );
    let elsewhere = json!({ "placement_intent": { "allocation_id": Uuid::now_v7() } });
    let refused = platform.create(with(asking(&number), elsewhere)).await.with(400);
    assert_eq!(pointers(&refused), ["/placement_intent/allocation_id"]);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_that_the_server_decides_is_held_to_the_versions_schema_too() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["allocation_id", "rack"],
        "properties": { "allocation_id": { "type": "string", "format": "uuid" }, "rack": { "type": "integer" } },
    });
    let more = json!({ "runtime_profile": profile(PORT, 30), "placement_schema": schema });
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    let refused = platform.create(asking(&number)).await.with(400);
    assert_eq!(
        (refused["code"].as_str(), pointers(&refused)),
        (Some("validation_error"), vec!["/placement_intent/rack".to_owned()])
    );
    let whole = json!({ "placement_intent": { "allocation_id": allocation, "rack": 7 } });
    let made = platform.create(with(asking(&number), whole)).await.with(202);
    assert_eq!(made["placement_intent"]["rack"], 7);
    platform.succeeds(id_of(&made["workflow"])).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_without_a_fitting_place_sees_every_allocation_against_every_predicate() {
    let platform = Platform::new().await;
    let number = platform.version(&profile(PORT, 30)).await;
    let nowhere = platform.create(asking(&number)).await.with(422);
    assert_eq!(
        (&nowhere["code"], &nowhere["details"]["matrix"]),
        (&json!("placement_unsatisfiable"), &json!([]))
    );
    let driver = Simulated::new();
    let (small, _) = platform.node("small", &driver, 1).await;
    let (large, drained) = platform.node("large", &driver, 8).await;
    platform.http.post(&admin(&format!("/nodes/{}/drain", large.id)), json!({})).await.with(200);
    let asked = with(asking(&number), json!({ "resources": { "gpu_count": 4 } }));
    let refused = platform.create(asked).await.with(422);
    let matrix = refused["details"]["matrix"].as_array().unwrap();
    assert_eq!(matrix.len(), 2, "both are shown");
    assert!(matrix.iter().all(|row| row["predicates"].as_array().unwrap().len() == 11));
    let broken = |row: &Value| -> Vec<(String, String, String)> {
        let all = row["predicates"].as_array().unwrap().iter().filter(|p| p["holds"] == false);
        let text = |p: &Value, name: &str| p[name].as_str().unwrap().to_owned();
        all.map(|p| (text(p, "name"), text(p, "required"), text(p, "actual"))).collect()
    };
    let of = |id: &str| matrix.iter().find(|row| row["allocation_id"] == id).unwrap();
    let drained = of(&drained.to_string());
    assert_eq!(broken(drained), [("node_status".into(), "active".into(), "drained".into())]);
    let other = matrix.iter().find(|row| row["allocation_id"] != drained["allocation_id"]).unwrap();
    assert_eq!(broken(other), [("free_gpu_count".into(), "at least 4".into(), "1".into())]);
    small.end().await;
    large.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_deploy_is_told_why_in_the_order_of_the_reasons() {
    let platform = Platform::new().await;
    let stranger = asking("1.0.0");
    assert_eq!(platform.create(stranger.clone()).await.with(404)["code"], "app_not_found");
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30) })).await;
    assert_eq!(platform.create(asking("9.9.9")).await.with(404)["code"], "version_not_found");
    assert_eq!(platform.create(asking(&number)).await.with(403)["code"], "entitlement_required");
    platform.entitle(true).await;
    let mode = |mode: &str| with(asking(&number), json!({ "operating_mode": mode }));
    let refused = platform.create(mode("platform_managed")).await.with(403);
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("policy_denied"), &json!("mode_disabled"))
    );
    let refused = platform.create(asking(&number)).await.with(409);
    assert_eq!((&refused["code"], &refused["details"]["state"]), (&json!("state_conflict"), &json!("draft")));
    platform.artifact(&number, &shelve(&number).to_string()).await;
    acts(&platform.http, "hello", &number, "stage", json!({})).await;
    acts(&platform.http, "hello", &number, "canary", json!({ "project_ids": [NEXT_DOOR] })).await;
    let refused = platform.create(asking(&number)).await.with(409);
    assert_eq!(refused["details"]["state"], "canary", "somebody else's canary");
    acts(&platform.http, "hello", &number, "canary", json!({ "project_ids": [EXAMPLE] })).await;
    assert_eq!(platform.create(asking(&number)).await.with(422)["code"], "placement_unsatisfiable");
    platform.entitle(false).await;
    assert_eq!(platform.create(asking(&number)).await.with(403)["code"], "entitlement_required");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_this_release_does_not_run_is_denied_by_name() {
    let platform = Platform::new().await;
    let manifest = json!({
        "app": { "slug": "cluster", "display_name": "Cluster", "category": "tests", "runtime_backend": "slurm" },
        "version": { "version": "1.0.0" },
    });
    let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    platform.http.post(&path, manifest).await.with(201);
    platform.http.put(&project("/apps/entitlements/cluster"), json!({ "enabled": true })).await.with(200);
    let body = json!({ "app_slug": "cluster", "version": "1.0.0", "display_name": "Cluster" });
    let refused = platform.create(body).await.with(403);
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("policy_denied"), &json!("backend_unavailable"))
    );
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_lost_its_trust_is_not_deployed_however_late_that_comes_out() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    // Policy asks for more than when it was verified, and the registry has no signature.
    let path = format!("/api/v1/admin/policies/project/{EXAMPLE}/artifact.signature_required");
    platform.http.put(&path, json!({ "value": true })).await.with(200);
    let made = platform.create(asking(&number)).await.with(202);
    assert_eq!(platform.story.ends(id_of(&made["workflow"])).await, RunState::Compensated);
    let instance = platform.instance(id_of(&made)).await;
    assert_eq!(instance["status_reason"]["code"], "artifact_revoked");
    let artifact = made["artifacts"][0]["artifact_id"].as_str().unwrap();
    let path = project(&format!("/app-artifacts/{artifact}/revoke"));
    platform.http.post(&path, json!({ "reason": "stolen key" })).await.with(200);
    assert_eq!(platform.create(asking(&number)).await.with(422)["code"], "artifact_untrusted");
    assert_eq!(driver.launches(), 0, "nothing was ever started");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_fails_too_often_is_halted_by_its_own_deployments() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let path = format!("/api/v1/admin/policies/project/{EXAMPLE}/canary.min_samples");
    platform.http.put(&path, json!({ "value": 2 })).await.with(200);
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30) })).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    acts(&platform.http, "hello", &number, "stage", json!({})).await;
    acts(&platform.http, "hello", &number, "canary", json!({ "percent": 100 })).await;
    platform.entitle(true).await;
    let (_, good) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(good).await;
    driver.will(agent::SimulatedFault::FailNext(domain::StatusReason::ReadinessTimeout));
    let (_, bad) = platform.deploy_version(allocation, &number, 0).await;
    assert_eq!(platform.story.ends(bad).await, RunState::Compensated);
    let refused = platform.create(asking(&number)).await.with(409);
    assert_eq!(refused["details"]["state"], "staged", "the canary went back");
    agent.end().await;
    platform.end().await;
}
