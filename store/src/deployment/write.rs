//! Writes a decided instance down: its row, the images and the release that it is about to run.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Decision, Wish};
use crate::app_instance_artifacts::{self, Standing};
use crate::app_instance_releases;
use crate::app_instances::{self, NewAppInstance};
use crate::app_versions::AppVersion;

/// Who asked for the instance, where, and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub id: Uuid,
    /// Organization and project.
    pub place: (Uuid, Uuid),
    pub display_name: &'a str,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
}

/// The instance is `requested` from here on.
pub async fn write(
    conn: &mut PgConnection,
    request: Request<'_>,
    version: &AppVersion,
    decision: &Decision,
    wish: &Wish,
) -> sqlx::Result<()> {
    let Request { id, place: (org_id, project_id), .. } = request;
    let admitted = &decision.admitted;
    let new = NewAppInstance {
        id,
        org_id,
        project_id,
        app_slug: &version.slug,
        version: &version.version,
        display_name: request.display_name,
        operating_mode: admitted.operating_mode.as_str(),
        control_plane_scope: admitted.control_plane_scope.as_str(),
        runtime_backend: admitted.manifest.version.runtime_backend.as_str(),
        allocation_id: Some(decision.allocation_id),
        placement_intent: &decision.placement_intent,
        config: &decision.release.config,
        asked_config: &wish.config(),
        resources: &decision.release.resources,
        variant: wish.variant.as_deref(),
        packages: &json!(wish.packages),
        credentials: &json!(wish.credentials),
        correlation_id: request.correlation_id,
        created_by: request.created_by,
    };
    app_instances::insert(conn, &new).await?;
    let target = Standing::Target;
    app_instance_artifacts::set(conn, id, target, &decision.images).await?;
    app_instance_releases::set(conn, id, target, &decision.release).await
}
