//! Wishes that cannot be met: all that is wrong with one is told at once, and nothing that was asked for is passed over.

use agent::Simulated;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stacks::stack;
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};
use crate::support::realm::EXAMPLE;
use crate::support::registry::shelve;

fn pointers(refused: &Value) -> Vec<&str> {
    let problems = refused["details"]["errors"].as_array().expect("a list of problems");
    let mut all: Vec<&str> = problems.iter().map(|one| one["pointer"].as_str().unwrap()).collect();
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_values_rendering_and_place_are_judged_together() {
    let platform = Platform::new().await;
    let mut narrow = stack();
    narrow["smoke"] = json!([]);
    narrow["artifacts"] = json!([{ "name": "runtime" }, { "name": "weights", "artifact_kind": "blob" }]);
    let profile = &mut narrow["runtime_profile"];
    profile["resources"] = json!({ "cpu_cores": { "max": 8 }, "memory_gib": { "max": 8 } });
    profile["topology"]["mounts"] =
        json!([{ "service": "server", "path": "/weights", "artifact": "weights" }]);
    let number = platform.draft(narrow).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    weights(&platform, &number).await;
    platform.roll_out(&number).await;
    let mut asked = json!({
        "app_slug": "hello", "version": number, "display_name": "a model",
        "operating_mode": "tenant_dedicated", "control_plane_scope": "platform",
        "placement_intent": { "allocation_id": Uuid::now_v7() }, "variant": "cuda",
        "config": { "model": "/weights/first", "hub_token": "/weights/second" },
    });
    let common = ["/config/hub_token", "/config/model", "/control_plane_scope"];
    let rest =
        ["/placement_intent/allocation_id", "/resources/cpu_cores", "/resources/memory_gib", "/variant"];
    let all = [&common[..], &rest[..]].concat();
    let refused = platform.create(asked.clone()).await.with(400);
    assert_eq!(pointers(&refused), all, "{refused:#}");
    // A share out of bounds hides nothing else.
    asked["resources"] = json!({ "cpu_cores": 9, "memory_gib": 9 });
    let refused = platform.create(asked).await.with(400);
    assert!(all.iter().all(|pointer| pointers(&refused).contains(pointer)), "{refused:#}");
    platform.end().await;
}

/// The blob of a version, as if somebody had uploaded it.
async fn weights(platform: &Platform, number: &str) -> Uuid {
    let named = shelve(&format!("weights of {number}"));
    let id = platform.artifact_named(number, "runtime", named.as_str()).await;
    let blob =
        "update app_artifacts set artifact_name = 'weights', artifact_kind = 'blob', repository = null,
                    source_type = 'artifact_store', source_uri = 'artifact_store://weights' where id = $1";
    sqlx::query(blob).bind(id).execute(&platform.story.pool).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_is_no_image_of_the_version_is_refused_by_name() {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let blob = weights(&platform, &number).await;
    let stray = platform.artifact(&number, shelve("a stray image").as_str()).await;
    let rename = "update app_artifacts set artifact_name = 'stray' where id = $1";
    sqlx::query(rename).bind(stray).execute(&platform.story.pool).await.unwrap();
    let operator = platform.http.acting("operator");
    for (artifact, name) in [(blob, "weights"), (stray, "stray")] {
        let create = json!({
            "app_slug": "hello", "version": number, "display_name": "hello", "artifact_id": artifact,
        });
        let change = json!({ "target_version": number, "artifact_id": artifact });
        let upgrade = project(&format!("/app-instances/{id}/upgrade"));
        for (path, body) in [(project("/app-instances"), create), (upgrade, change)] {
            let refused = operator.post(&path, body).await.with(422);
            assert_eq!(
                (&refused["code"], &refused["details"]["artifact_name"]),
                (&json!("artifact_not_deployable"), &json!(name)),
                "{path}: {refused:#}"
            );
        }
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_only_the_platform_runs_is_switched_off_also_for_those_who_name_no_mode() {
    let platform = Platform::new().await;
    let modes = json!({ "operating_modes": ["platform_managed"], "control_plane_scopes": ["platform"] });
    let manifest = json!({
        "app": { "slug": "shared", "display_name": "Shared", "category": "tests",
                 "runtime_backend": "launchable_oci", "supported_modes": modes },
        "version": { "version": "1.0.0", "runtime_profile": profile(PORT, 30) },
    });
    platform
        .http
        .post(&admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}")), manifest)
        .await
        .with(201);
    // It was given while the platform still ran such apps.
    for enabled in [true, false] {
        let path = admin(&format!("/policies/project/{EXAMPLE}/apps.platform_managed_enabled"));
        platform.http.put(&path, json!({ "value": enabled })).await.with(200);
        if enabled {
            let path = project("/apps/entitlements/shared");
            platform.http.acting("project-admin").put(&path, json!({ "enabled": true })).await.with(200);
        }
    }
    let asked = json!({ "app_slug": "shared", "version": "1.0.0", "display_name": "shared" });
    let refused = platform.create(asked).await.with(403);
    assert_eq!(
        (&refused["code"], &refused["details"]["reason"]),
        (&json!("policy_denied"), &json!("mode_disabled"))
    );
    platform.end().await;
}
