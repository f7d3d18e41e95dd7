//! What each layer allows a project to do with an app, and what is left of it.

use domain::entitlement::{Effective, Layer, Limits, narrow};
use domain::manifest::Manifest;
use domain::{PolicyKey, PolicyLayer};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::policies::{self, Subject};

/// Everything outside the project: the manifest, and what the platform and the organization decided.
pub async fn outer_layers(
    conn: &mut PgConnection,
    (org, project): (Uuid, Uuid),
    manifest: &Manifest,
) -> sqlx::Result<Vec<(Layer, Limits)>> {
    let here = Subject { org: Some(org), project: Some(project), user: None };
    let managed = policies::resolve(conn, PolicyKey::PlatformManagedEnabled, here).await?;
    let decided_by = match managed.layer {
        None | Some(PolicyLayer::Global) => Layer::Platform,
        Some(PolicyLayer::Org) => Layer::Org,
        Some(PolicyLayer::Project | PolicyLayer::User) => Layer::Project,
    };
    let enabled = managed.value == Value::Bool(true);
    Ok(vec![
        (Layer::Manifest, of_manifest(manifest)),
        (decided_by, Limits::where_platform_managed_is(enabled)),
    ])
}

/// What is left when the project's own overrides have had their say too.
pub async fn effective(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    manifest: &Manifest,
    overrides: &Limits,
) -> sqlx::Result<Effective> {
    let mut layers = outer_layers(conn, place, manifest).await?;
    layers.push((Layer::Project, overrides.clone()));
    Ok(narrow(&layers))
}

fn of_manifest(manifest: &Manifest) -> Limits {
    let modes = &manifest.app.supported_modes;
    Limits {
        allowed_operating_modes: Some(modes.operating_modes.iter().copied().collect()),
        allowed_control_plane_scopes: Some(modes.control_plane_scopes.iter().copied().collect()),
        max_gpu_count: manifest
            .version
            .runtime_profile
            .as_ref()
            .and_then(|profile| profile.resources.gpu_count.max),
    }
}
