//! What stands before any run: a node with an allocation, and an app whose two versions the project may deploy.

use std::sync::OnceLock;

use clients::registry::Registry;
use domain::canary::Canary;
use domain::entitlement::Limits;
use domain::manifest;
use domain::version_status::VersionAction;
use node_protocol::Key;
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use store::app_versions::{Advance, NewVersion};
use store::entitlements::NewEntitlement;
use store::{
    allocations, app_versions, apps, entitlements, nodes, organizations, projects, version_artifacts,
};
use uuid::Uuid;

use super::{ALLOCATION, NODE, ORG, PROJECT, SEED, VERSIONS};
use crate::support::docker::PORT;
use crate::support::platform::profile;
use crate::support::registry::{shelf, shelve};

/// Read by every process of the story; a test is a process of its own.
pub(super) static REGISTRY: OnceLock<Registry> = OnceLock::new();

pub(super) async fn furnish(pool: &PgPool) {
    let key = Key::from_pem(SEED).unwrap();
    let mut tx = pool.begin().await.unwrap();
    organizations::ensure(&mut tx, ORG, "demo", "demo").await.unwrap();
    projects::ensure(&mut tx, PROJECT, ORG, "example", "example").await.unwrap();
    let new = nodes::NewNode {
        id: NODE,
        name: "gpu-1",
        enrolment_hash: b"hash",
        enrolment_lives: chrono::TimeDelta::hours(1),
        created_by: Uuid::nil(),
    };
    nodes::insert(&mut tx, &new).await.unwrap();
    let enrolment = nodes::Enrolment {
        key_id: &key.id(),
        public_key: &key.public().to_pem().unwrap(),
        address: "127.0.0.1",
        driver: "simulated",
        agent_version: "test",
        inventory: &json!({}),
    };
    nodes::enrol(&mut tx, b"hash", &enrolment).await.unwrap().unwrap();
    let new = allocations::NewAllocation {
        id: ALLOCATION,
        org_id: ORG,
        project_id: PROJECT,
        node_id: NODE,
        shape: domain::CapacityShape::GpuSlice,
        sku: "cpu",
        accelerator: None,
        gpu_count: 0,
        gpus: &[],
        cpu_cores: 2,
        memory_gib: 2,
        created_by: Uuid::nil(),
        correlation_id: "c",
    };
    allocations::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
    let _ = REGISTRY.set(shelf().registry);
    for (number, artifact, image) in VERSIONS {
        stock(pool, number, artifact, image).await;
    }
}

/// The app in the catalog, a version in a canary that is open to all, its image on the shelf, the project entitled.
async fn stock(pool: &PgPool, number: &str, artifact: Uuid, image: &str) {
    let mut tx = pool.begin().await.unwrap();
    let manifest = json!({
        "app": { "slug": "hello", "display_name": "Hello", "runtime_backend": "launchable_oci" },
        "version": {
            "version": number, "runtime_profile": profile(PORT, 5), "smoke": [{ "name": "it is there", "path": "/" }],
        },
    });
    let manifest = manifest::take(&manifest).unwrap().manifest;
    let (digest, manifest) = (manifest.digest(), json!(manifest));
    let app = apps::ensure_locked(&mut tx, "hello", (ORG, PROJECT), &manifest["app"]).await.unwrap();
    let new = NewVersion {
        app_id: app.id,
        version: number,
        manifest: &manifest,
        content_digest: &digest,
        registered_by: Uuid::nil(),
    };
    let version = app_versions::insert(&mut tx, &new).await.unwrap();
    shelved(&mut tx, number, artifact, image).await;
    let version = app_versions::lock(&mut tx, version).await.unwrap().unwrap();
    version_artifacts::freeze(&mut tx, &version).await.unwrap();
    app_versions::advance(&mut tx, &version, VersionAction::Stage, Advance::default()).await.unwrap();
    let version = app_versions::lock(&mut tx, version.id).await.unwrap().unwrap();
    let everybody = Canary { percent: 100, project_ids: vec![] };
    let with = Advance { canary: Some(&everybody), ..Advance::default() };
    app_versions::advance(&mut tx, &version, VersionAction::Canary, with).await.unwrap();
    let entitlement = NewEntitlement {
        org_id: ORG,
        project_id: PROJECT,
        app_id: app.id,
        enabled: true,
        overrides: &Limits::default(),
        updated_by: Uuid::nil(),
    };
    entitlements::set(&mut tx, &entitlement).await.unwrap();
    tx.commit().await.unwrap();
}

/// A verified artifact whose manifest the registry has.
async fn shelved(conn: &mut PgConnection, number: &str, artifact: Uuid, image: &str) {
    sqlx::query(
        "insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, repository,
             tag, created_by, correlation_id, expires_at)
         values ($1, $2, $3, 'hello', $4, 'runtime', 'oci', 'gpuaas/apps/example/hello', 'v', $1, 'c', engine.now())",
    )
    .bind(artifact)
    .bind(ORG)
    .bind(PROJECT)
    .bind(number)
    .execute(&mut *conn)
    .await
    .unwrap();
    sqlx::query(
        "insert into app_artifacts (id, org_id, project_id, app_slug, app_version, artifact_name, artifact_kind, source_type,
             repository, digest, media_type, size_bytes, trust_state, intent_id, created_by, correlation_id)
         values ($1, $2, $3, 'hello', $5, 'runtime', 'oci', 'oci_registry', 'gpuaas/apps/example/hello', $4,
             'application/vnd.oci.image.manifest.v1+json', 1, 'verified', $1, $1, 'c')",
    )
    .bind(artifact)
    .bind(ORG)
    .bind(PROJECT)
    .bind(shelve(image).to_string())
    .bind(number)
    .execute(&mut *conn)
    .await
    .unwrap();
}
