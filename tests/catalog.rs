//! The catalog, told as people use it: an app team submits, the platform's people review and roll out, projects are
//! entitled.

mod canary;
mod entitlements;
mod moves;
mod onboarding;
mod reads;
mod retire;
mod rollout;
mod smoke;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Answer, Http};
use crate::support::control_plane::Platform;
use crate::support::realm::{DEMO, EXAMPLE};

/// A small app that names one artifact.
pub fn manifest(slug: &str, version: &str) -> Value {
    json!({
        "app": { "slug": slug, "display_name": slug, "category": "tests", "runtime_backend": "launchable_oci" },
        "version": {
            "version": version,
            "runtime_profile": { "kind": "launchable_oci", "ports": [{ "container": 8080 }] },
        },
    })
}

pub fn catalog(path: &str) -> String {
    format!("/api/v1/apps/catalog{path}")
}

pub fn admin_catalog(path: &str) -> String {
    format!("/api/v1/admin/apps/catalog{path}")
}

/// Puts a draft into the catalog for the project `example`.
pub async fn register(http: &Http, slug: &str, version: &str) -> Value {
    let path = format!("/api/v1/admin/apps/manifests?owner_project_id={EXAMPLE}");
    http.post(&path, manifest(slug, version)).await.with(201)
}

/// Asks for an action and waits for what becomes of it.
pub async fn act(http: &Http, slug: &str, version: &str, verb: &str, body: Value) -> Answer {
    http.post(&format!("{}?wait=60s", admin_catalog(&format!("/{slug}/versions/{version}/{verb}"))), body)
        .await
}

/// The action must succeed; answers the version.
pub async fn acts(http: &Http, slug: &str, version: &str, verb: &str, body: Value) -> Value {
    let answer = act(http, slug, version, verb, body).await.with(200);
    assert_eq!(answer["workflow"]["status"], "succeeded", "{verb}: {answer:#}");
    answer
}

/// The version's artifact, as registering and verifying leaves it.
pub async fn artifact(
    platform: &Platform,
    slug: &str,
    version: &str,
    trust: &str,
    channels: &[&str],
) -> Uuid {
    let (intent, id) = (Uuid::now_v7(), Uuid::now_v7());
    let channels: Vec<String> = channels.iter().map(|&channel| channel.to_owned()).collect();
    sqlx::query(
        "insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, repository, tag,
             created_by, correlation_id, expires_at)
         values ($1, $2, $3, $4, $5, 'runtime', 'oci', 'gpuaas/apps/example/' || $4, 'v', $1, 'c', engine.now())",
    )
    .bind(intent)
    .bind(DEMO)
    .bind(EXAMPLE)
    .bind(slug)
    .bind(version)
    .execute(&platform.story.pool)
    .await
    .unwrap();
    sqlx::query(
        "insert into app_artifacts (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, source_type,
             repository, digest, media_type, size_bytes, trust_state, channels, intent_id, created_by, correlation_id)
         values ($1, $2, $3, $4, $5, 'runtime', 'oci', 'oci_registry', 'gpuaas/apps/example/' || $4,
             'sha256:' || encode(sha256($1::text::bytea), 'hex'), 'application/vnd.oci.image.manifest.v1+json', 1, $6, $7, $8, $1,
             'c')",
    )
    .bind(id)
    .bind(DEMO)
    .bind(EXAMPLE)
    .bind(slug)
    .bind(version)
    .bind(trust)
    .bind(channels)
    .bind(intent)
    .execute(&platform.story.pool)
    .await
    .unwrap();
    id
}

/// An instance that runs the version.
pub async fn instance(platform: &Platform, slug: &str, version: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status, operating_mode,
             control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
         values ($1, $2, $3, $4, $5, 'notebook', 'running', 'tenant_dedicated', 'project', 'launchable_oci', '{}', '{}', '{}',
             'c', $1)",
    )
    .bind(id)
    .bind(DEMO)
    .bind(EXAMPLE)
    .bind(slug)
    .bind(version)
    .execute(&platform.story.pool)
    .await
    .unwrap();
    id
}

pub async fn decommissioned(platform: &Platform, instance: Uuid) {
    sqlx::query("update app_instances set status = 'decommissioned' where id = $1")
        .bind(instance)
        .execute(&platform.story.pool)
        .await
        .unwrap();
}

/// Registers a version with a good artifact and takes it as far as `active`.
pub async fn publish(platform: &Platform, slug: &str, version: &str) {
    register(platform, slug, version).await;
    artifact(platform, slug, version, "verified", &["prod"]).await;
    acts(platform, slug, version, "stage", json!({})).await;
    acts(platform, slug, version, "canary", json!({ "percent": 100 })).await;
    acts(platform, slug, version, "publish", json!({})).await;
}

/// What the world was told of a version, in order.
pub async fn told(platform: &Platform, version: &Value) -> Vec<String> {
    sqlx::query_scalar("select type from outbox where subject = $1 order by pos")
        .bind(version["id"].as_str().unwrap())
        .fetch_all(&platform.story.pool)
        .await
        .unwrap()
}
