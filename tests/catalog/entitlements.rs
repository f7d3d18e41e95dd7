//! Entitlements only narrow, say who took away what, and kill nothing.

use axum::http::Method;
use domain::{PolicyKey, PolicyLayer};
use serde_json::{Value, json};
use store::policies;
use uuid::Uuid;

use super::{instance, manifest, publish};
use crate::http::{admin, project};
use crate::support::control_plane::Platform;
use crate::support::realm::{DEMO, EXAMPLE};

/// An app that the platform could run for several tenants too.
async fn shareable(platform: &Platform) {
    let mut both = manifest("shared", "1.0.0");
    both["app"]["supported_modes"] = json!({
        "operating_modes": ["tenant_dedicated", "platform_managed"],
        "control_plane_scopes": ["project", "tenant", "platform"],
    });
    both["version"]["runtime_profile"]["resources"] =
        json!({ "gpu_count": { "min": 0, "default": 1, "max": 8 } });
    platform.post(&admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}")), both).await.with(201);
}

async fn managed(platform: &Platform, layer: PolicyLayer, subject: Uuid, enabled: bool) {
    let mut conn = platform.story.pool.acquire().await.unwrap();
    let (key, value) = (PolicyKey::PlatformManagedEnabled, json!(enabled));
    policies::set(&mut conn, layer, subject, key, &value, Uuid::nil()).await.unwrap();
}

async fn effective(platform: &Platform) -> Value {
    let path = project("/apps/entitlements/shared/effective");
    platform.acting("project-admin").get(&path).await.with(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layer_takes_away_and_is_named() {
    let platform = Platform::new().await;
    shareable(&platform).await;
    let removed = |effective: &Value| effective["removed"].clone();
    let by_platform = effective(&platform).await;
    assert_eq!((&by_platform["enabled"], &by_platform["max_gpu_count"]), (&json!(false), &json!(8)));
    assert_eq!(
        removed(&by_platform)[0],
        json!({ "layer": "platform", "field": "allowed_operating_modes", "value": "platform_managed" })
    );
    managed(&platform, PolicyLayer::Global, Uuid::nil(), true).await;
    assert_eq!(effective(&platform).await["allowed_pairs"].as_array().unwrap().len(), 3);
    managed(&platform, PolicyLayer::Org, DEMO, false).await;
    assert_eq!(removed(&effective(&platform).await)[0]["layer"], "org");

    let path = project("/apps/entitlements/shared");
    let narrow = json!({ "enabled": true, "policy_overrides": { "allowed_control_plane_scopes": ["project"], "max_gpu_count": 2 } });
    let set = platform.acting("project-admin").put(&path, narrow).await.with(200);
    let left = &set["effective"];
    assert_eq!(
        left["allowed_pairs"],
        json!([{ "operating_mode": "tenant_dedicated", "control_plane_scope": "project" }])
    );
    assert_eq!(left["max_gpu_count"], 2);
    let tenant = json!({ "layer": "project", "field": "allowed_control_plane_scopes", "value": "tenant" });
    assert!(removed(left).as_array().unwrap().contains(&tenant), "{left:#}");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn widening_is_refused_with_the_layer_that_forbids_it() {
    let platform = Platform::new().await;
    shareable(&platform).await;
    let path = project("/apps/entitlements/shared");
    let admin = platform.acting("project-admin");
    let wide = json!({ "enabled": true, "policy_overrides": { "allowed_operating_modes": ["platform_managed"], "max_gpu_count": 9 } });
    let refused = admin.put(&path, wide).await.with(403);
    assert_eq!(refused["code"], "policy_denied");
    assert_eq!(
        refused["details"]["widened"],
        json!([
            { "layer": "platform", "field": "allowed_operating_modes", "value": "platform_managed" },
            { "layer": "manifest", "field": "max_gpu_count", "value": 8 },
        ])
    );
    let nothing = json!({ "enabled": true, "policy_overrides": { "allowed_operating_modes": [] } });
    assert_eq!(
        admin.put(&path, nothing).await.with(400)["details"]["errors"][0]["pointer"],
        "/policy_overrides"
    );
    let unknown = json!({ "enabled": true, "policy_overrides": { "allowed_moods": ["good"] } });
    assert_eq!(admin.put(&path, unknown).await.with(400)["code"], "validation_error");
    assert_eq!(
        admin.get(&project("/apps/entitlements")).await.with(200)["items"],
        json!([]),
        "nothing was kept"
    );
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_an_app_back_is_never_refused_and_whoever_leaves_nothing_is_named() {
    let platform = Platform::new().await;
    let mut managed_only = manifest("shared", "1.0.0");
    managed_only["app"]["supported_modes"] =
        json!({ "operating_modes": ["platform_managed"], "control_plane_scopes": ["platform"] });
    let register = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    platform.post(&register, managed_only).await.with(201);
    let (admin, path) = (platform.acting("project-admin"), project("/apps/entitlements/shared"));
    let given = |enabled: bool| json!({ "enabled": enabled, "policy_overrides": { "allowed_operating_modes": ["platform_managed"] } });
    managed(&platform, PolicyLayer::Global, Uuid::nil(), true).await;
    admin.put(&path, given(true)).await.with(200);

    managed(&platform, PolicyLayer::Org, DEMO, false).await;
    for body in [given(true), json!({ "enabled": true })] {
        let refused = admin.put(&path, body).await.with(403);
        assert_eq!(refused["code"], "policy_denied");
        let org = json!({ "layer": "org", "field": "allowed_operating_modes", "value": "platform_managed" });
        assert!(refused["details"]["removed"].as_array().unwrap().contains(&org), "{refused:#}");
        let told = refused["message"].as_str().unwrap();
        assert!(told.contains("the organization does not allow platform_managed"), "{told}");
    }
    let off = admin.put(&path, given(false)).await.with(200);
    assert_eq!((&off["enabled"], &off["effective"]["enabled"]), (&json!(false), &json!(false)));
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_cannot_change_entitlements() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let body =
        json!({ "name": "robot", "permissions": ["apps.entitlement.manage", "apps.entitlement.read"] });
    let made = platform.acting("project-admin").post(&project("/service-accounts"), body).await.with(201);
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let token = platform.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    let robot = platform.bearing(token["access_token"].as_str().unwrap());
    let path = project("/apps/entitlements/notes");
    let refused = robot.put(&path, json!({ "enabled": true })).await.with(403);
    assert_eq!(refused["code"], "insufficient_permissions");
    robot.get(&format!("{path}/effective")).await.with(200);
    platform.acting("viewer").put(&path, json!({ "enabled": true })).await.with(403);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_kills_nothing_and_says_so() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let (admin, path) = (platform.acting("project-admin"), project("/apps/entitlements/notes"));
    let first = admin.put(&path, json!({ "enabled": true })).await;
    let tag = first.header("etag").to_owned();
    first.with(200);
    let user = instance(&platform, "notes", "1.0.0").await;
    let stale =
        admin.send(Method::PUT, &path, &[("if-match", "\"x\"")], Some(json!({ "enabled": false }))).await;
    assert_eq!(stale.status, 412);
    let off = json!({ "enabled": false, "reason": "cost" });
    let disabled = admin.send(Method::PUT, &path, &[("if-match", &tag)], Some(off)).await.with(200);
    let effective = &disabled["effective"];
    assert_eq!(effective["blocked_actions"], json!(["deploy", "upgrade", "rollback", "retry"]));
    assert_eq!(
        effective["notice"],
        "The project may not use the app any more: 1 of its instances go on as they are and can only be decommissioned."
    );
    let still: String = sqlx::query_scalar("select status from app_instances where id = $1")
        .bind(user)
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(still, "running");
    let events: Vec<bool> = sqlx::query_scalar(
        "select (data ->> 'enabled')::bool from outbox where type = 'apps.entitlement.changed' order by pos",
    )
    .fetch_all(&platform.story.pool)
    .await
    .unwrap();
    assert_eq!(events, [true, false]);
    platform.end().await;
}
