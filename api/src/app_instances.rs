//! `P/app-instances`: what runs for a project, where it is reached, what may be asked of it, how it ended.

mod access;
mod actions;
mod create;
mod logs;
mod members;
mod plan;
mod read;
mod receipt;
mod rendered;
mod report;
mod timeline;

pub(crate) use access::access;
pub(crate) use create::create;
pub(crate) use logs::logs;
pub(crate) use members::members;
pub(crate) use plan::{plan, plan_new};
pub(crate) use read::{list, show};
pub(crate) use receipt::receipt;
pub(crate) use rendered::rendered;
pub(crate) use report::{heartbeat, report_event};
pub(crate) use timeline::{events, operations};

use api_types::{AppInstance, InstanceArtifact, InstanceReason};
use domain::{ControlPlaneScope, ErrorCode, InstanceStatus, ReasonKind, StatusReason, UnknownWord};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances as table;
use store::nodes::{self, Node};
use store::{allocations, entitlements};
use tracing::Span;
use uuid::Uuid;
use workflows::action::{Action, allowed_actions};
use workflows::instance::{Retry, allowed_out_of_reach};

use crate::caller::Caller;
use crate::entitlements::BLOCKED;
use crate::error::ApiError;
use crate::path::Id;

/// The instance of this project.
async fn found(conn: &mut PgConnection, caller: &Caller, id: Id) -> Result<table::AppInstance, ApiError> {
    let instance = table::find(conn, id.or(ErrorCode::AppInstanceNotFound)?).await?;
    own(instance, caller)
}

fn own(instance: Option<table::AppInstance>, caller: &Caller) -> Result<table::AppInstance, ApiError> {
    let own = instance.filter(|instance| Some(instance.project_id) == caller.scope.project());
    let own = own.ok_or_else(|| ApiError::plain(ErrorCode::AppInstanceNotFound))?;
    record(&own);
    Ok(own)
}

/// What every further line of the request says.
fn record(instance: &table::AppInstance) {
    let span = Span::current();
    span.record("app_instance_id", tracing::field::display(instance.id));
    span.record("operating_mode", &instance.operating_mode);
    span.record("control_plane_scope", &instance.control_plane_scope);
    span.record("runtime_backend", &instance.runtime_backend);
}

/// The node that the instance stands on, once it was placed.
async fn node_of(conn: &mut PgConnection, instance: &table::AppInstance) -> Result<Option<Node>, ApiError> {
    let Some(allocation) = instance.allocation_id else { return Ok(None) };
    let Some(allocation) = allocations::find(conn, allocation).await? else { return Ok(None) };
    Ok(nodes::find(conn, allocation.node_id).await?)
}

/// As callers see it.
async fn shown(conn: &mut PgConnection, row: table::AppInstance) -> Result<AppInstance, ApiError> {
    let lost = out_of_reach(conn, std::slice::from_ref(&row)).await?;
    seen(conn, row, &lost).await
}

/// With what serves, or, before anything does, with what is about to. The nodes of these instances are not heard of.
async fn seen(
    conn: &mut PgConnection,
    row: table::AppInstance,
    lost: &[Uuid],
) -> Result<AppInstance, ApiError> {
    let mut used = app_instance_artifacts::of(conn, row.id, Standing::Serving).await?;
    let serves = !used.is_empty();
    if !serves {
        used = app_instance_artifacts::of(conn, row.id, Standing::Target).await?;
    }
    let artifacts = used.into_iter().map(|one| InstanceArtifact {
        name: one.name,
        artifact_id: one.artifact_id,
        digest: one.digest,
    });
    let offered = offered(conn, &row, lost.contains(&row.id)).await?;
    let (status, reason) = (row.status()?, row.reason()?);
    // What failed before it served has nothing that could come back by itself.
    let waits_for_a_person = status == InstanceStatus::Failed && !serves;
    let kind = |code: StatusReason| if waits_for_a_person { ReasonKind::Blocked } else { code.kind() };
    let scope: ControlPlaneScope = row.control_plane_scope.parse().map_err(newer)?;
    Ok(AppInstance {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        app_slug: row.app_slug,
        version: row.version,
        target_version: row.target_version,
        display_name: row.display_name,
        status,
        status_reason: reason.map(|code| InstanceReason {
            code,
            kind: kind(code),
            message: row.status_message.unwrap_or_default(),
        }),
        operating_mode: row.operating_mode.parse().map_err(newer)?,
        control_plane_scope: scope,
        runtime_backend: row.runtime_backend.parse().map_err(newer)?,
        tenant_boundary_mode: scope.boundary(),
        placement_intent: row.placement_intent,
        config: row.config,
        resources: row.resources,
        artifacts: artifacts.collect(),
        operator_service_account_id: row.operator_service_account_id,
        last_operation: row.last_operation,
        allowed_actions: offered.into_iter().map(str::to_owned).collect(),
        correlation_id: row.correlation_id,
        created_at: row.created_at,
        activated_at: row.activated_at,
    })
}

/// Those of which it matters that their node is not heard of: the others may be asked for the same without it.
async fn out_of_reach(conn: &mut PgConnection, rows: &[table::AppInstance]) -> Result<Vec<Uuid>, ApiError> {
    let failed: Vec<Uuid> = rows.iter().filter(|row| Retry::is_legal(row)).map(|row| row.id).collect();
    if failed.is_empty() { Ok(failed) } else { Ok(table::on_lost_nodes(conn, &failed).await?) }
}

/// What may be asked of it now. Of an app that the project may not use any more, only what is not blocked.
async fn offered(
    conn: &mut PgConnection,
    row: &table::AppInstance,
    lost: bool,
) -> Result<Vec<&'static str>, ApiError> {
    let mut legal = if lost { allowed_out_of_reach(row) } else { allowed_actions(row) };
    if legal.iter().any(|verb| BLOCKED.contains(verb))
        && !entitlements::is_enabled(conn, row.project_id, &row.app_slug).await?
    {
        legal.retain(|verb| !BLOCKED.contains(verb));
    }
    Ok(legal)
}

/// A word that only a newer release knows.
fn newer(unknown: UnknownWord) -> ApiError {
    ApiError::internal(&unknown)
}

async fn shown_all(
    conn: &mut PgConnection,
    rows: Vec<table::AppInstance>,
) -> Result<Vec<AppInstance>, ApiError> {
    let lost = out_of_reach(conn, &rows).await?;
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        all.push(seen(conn, row, &lost).await?);
    }
    Ok(all)
}

fn project(caller: &Caller) -> Result<Uuid, ApiError> {
    caller.scope.project().ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}

/// Organization and project of the path.
fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    let place = caller.scope.org().zip(caller.scope.project());
    place.ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}
