//! App instances. A state changes only by [`move_to`], which asks the table of legal moves; the generation rises when a
//! lifecycle run starts and fences everything older off.

mod read;
mod wellbeing;

pub use read::{
    Filter, Neighbours, changing_on_live_nodes, changing_on_lost_nodes, expected_on, find, find_locked, list,
    neighbours, of, on_allocation, on_lost_nodes, on_node, running_on_lost_nodes, standing_in,
    unreachable_on_live_nodes, using_version,
};
pub use wellbeing::{Serving, serving_on, tell_whether_it_serves};

use chrono::{DateTime, Utc};
use domain::{InstanceStatus, StatusReason};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_instance_releases::Release;
use crate::parsed;

#[derive(Clone, Debug)]
pub struct AppInstance {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub version: String,
    pub target_version: Option<String>,
    pub previous_version: Option<String>,
    pub display_name: String,
    pub status: String,
    pub status_reason: Option<String>,
    pub status_message: Option<String>,
    pub failed_during: Option<String>,
    pub generation: i64,
    pub operating_mode: String,
    pub control_plane_scope: String,
    pub runtime_backend: String,
    pub allocation_id: Option<Uuid>,
    pub placement_intent: Value,
    /// With the defaults of the version that serves.
    pub config: Value,
    /// Without them; none where an older release wrote the row.
    pub asked_config: Option<Value>,
    pub resources: Value,
    pub variant: Option<String>,
    pub packages: Value,
    pub credentials: Value,
    pub operator_service_account_id: Option<Uuid>,
    pub endpoints: Value,
    pub last_operation: Option<Value>,
    pub correlation_id: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub activated_at: Option<DateTime<Utc>>,
    pub decommissioned_at: Option<DateTime<Utc>>,
}

impl AppInstance {
    pub fn status(&self) -> sqlx::Result<InstanceStatus> {
        parsed(&self.status)
    }

    /// What another version has to take, and adds its own defaults to.
    pub fn config_to_keep(&self) -> &Value {
        self.asked_config.as_ref().unwrap_or(&self.config)
    }

    pub fn reason(&self) -> sqlx::Result<Option<StatusReason>> {
        self.status_reason.as_deref().map(parsed).transpose()
    }
}

/// An instance as it is asked for, with everything the server decided.
pub struct NewAppInstance<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: &'a str,
    pub version: &'a str,
    pub display_name: &'a str,
    pub operating_mode: &'a str,
    pub control_plane_scope: &'a str,
    pub runtime_backend: &'a str,
    pub allocation_id: Option<Uuid>,
    pub placement_intent: &'a Value,
    pub config: &'a Value,
    pub asked_config: &'a Value,
    pub resources: &'a Value,
    pub variant: Option<&'a str>,
    pub packages: &'a Value,
    pub credentials: &'a Value,
    pub correlation_id: &'a str,
    pub created_by: Uuid,
}

pub async fn insert(conn: &mut PgConnection, new: &NewAppInstance<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into app_instances (id, org_id, project_id, app_slug, version, display_name, operating_mode,
                control_plane_scope, runtime_backend, allocation_id, placement_intent, config, resources, variant, packages,
                credentials, correlation_id, created_by, asked_config)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        new.id,
        new.org_id,
        new.project_id,
        new.app_slug,
        new.version,
        new.display_name,
        new.operating_mode,
        new.control_plane_scope,
        new.runtime_backend,
        new.allocation_id,
        new.placement_intent,
        new.config,
        new.resources,
        new.variant,
        new.packages,
        new.credentials,
        new.correlation_id,
        new.created_by,
        new.asked_config
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Why an instance fails, or is not what it should be, in words for a person. Never holds a secret.
#[derive(Clone, Debug)]
pub struct Why {
    pub reason: StatusReason,
    pub message: String,
}

/// Moves an instance along the table of legal moves. False when it stands elsewhere or the move is not legal.
pub async fn move_to(
    conn: &mut PgConnection,
    id: Uuid,
    from: InstanceStatus,
    to: InstanceStatus,
    why: Option<&Why>,
) -> sqlx::Result<bool> {
    if !from.may_become(to) {
        return Ok(false);
    }
    // A retry resumes what failed: taking down what was being taken down, and else bringing up.
    let failed_during = (to == InstanceStatus::Failed).then(|| match from {
        InstanceStatus::Decommissioning => from.as_str(),
        _ => InstanceStatus::Deploying.as_str(),
    });
    let moved = sqlx::query!(
        "update app_instances set status = $3, status_reason = $4, status_message = $5, failed_during = $6,
                updated_at = engine.now(),
                activated_at = case when $3 = 'running' then coalesce(activated_at, engine.now()) else activated_at end,
                decommissioned_at = case when $3 = 'decommissioned' then engine.now() end
         where id = $1 and status = $2",
        id,
        from.as_str(),
        to.as_str(),
        why.map(|why| why.reason.as_str()),
        why.map(|why| why.message.as_str()),
        failed_during
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// Says why the instance is not what it should be, wherever it stands.
pub async fn note_reason(conn: &mut PgConnection, id: Uuid, why: &Why) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set status_reason = $2, status_message = $3, updated_at = engine.now() where id = $1",
        id,
        why.reason.as_str(),
        why.message
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whatever was said of it, there is nothing to say any more.
pub async fn forget_reason(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set status_reason = null, status_message = null, updated_at = engine.now() where id = $1",
        id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Where the workload is reached.
pub async fn set_endpoints(conn: &mut PgConnection, id: Uuid, endpoints: &Value) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set endpoints = $2, updated_at = engine.now() where id = $1",
        id,
        endpoints
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The identity that the workload speaks to the platform with, while it has one.
pub async fn set_account(conn: &mut PgConnection, id: Uuid, account: Option<Uuid>) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set operator_service_account_id = $2, updated_at = engine.now() where id = $1",
        id,
        account
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Where an upgrade or rollback is going, while one is under way.
pub async fn set_target(conn: &mut PgConnection, id: Uuid, version: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set target_version = $2, updated_at = engine.now() where id = $1",
        id,
        version
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The target serves from now on, and what served before is where a rollback goes. Where nobody wrote down what was asked for,
/// it is what there was before the target added its defaults.
pub async fn switch(conn: &mut PgConnection, id: Uuid, release: &Release) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set previous_version = version, version = $2, target_version = null, config = $3,
                asked_config = coalesce(asked_config, config), resources = $4, updated_at = engine.now()
         where id = $1",
        id,
        release.version,
        release.config,
        release.resources
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn set_last_operation(conn: &mut PgConnection, id: Uuid, operation: &Value) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set last_operation = $2, updated_at = engine.now() where id = $1",
        id,
        operation
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A lifecycle run starts: everything of an older generation is fenced off from now on.
pub async fn next_generation(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        "update app_instances set generation = generation + 1, updated_at = engine.now() where id = $1
         returning generation",
        id
    )
    .fetch_one(conn)
    .await
}
