//! `POST P/app-instances`: everything is decided here and answered, and the run that makes it true is started in the same
//! transaction. The version is held for use, so it cannot be retired under the instance.

use api_types::{AppInstanceWithRun, NewAppInstance, WantedResources};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use domain::event::{EventType, NewEvent};
use domain::manifest::Wanted;
use engine::{Start, Started};
use serde_json::Value;
use sqlx::PgConnection;
use store::app_instances as table;
use store::app_versions::{self, AppVersion};
use store::deployment::{self, Decision, Purpose, Request, Wish};
use store::{apps, outbox};
use uuid::Uuid;
use workflows::instance::deploy::DeployInstance;
use workflows::instance::{public, target};

use super::{place, record, shown};
use crate::action::{accepted, settled};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::mutation::{Change, Mutation};
use crate::params::Params;
use crate::path::Id;
use crate::state::State;
use crate::wait;
use crate::workflows::handle_of_run;

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_app_instance", "Deploy a version of an app", make)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .body::<NewAppInstance>()
        .answers::<AppInstanceWithRun>(202, "Begun; `Location` is where to follow the run.")
        .answers::<AppInstanceWithRun>(200, "With `wait`: the run has settled; `workflow.status` says how.")
        .refuses(&[
            ErrorCode::AppNotFound,
            ErrorCode::VersionNotFound,
            ErrorCode::ArtifactNotFound,
            ErrorCode::EntitlementRequired,
            ErrorCode::PolicyDenied,
            ErrorCode::StateConflict,
            ErrorCode::ArtifactUntrusted,
            ErrorCode::ArtifactNotDeployable,
            ErrorCode::PlacementUnsatisfiable,
        ])
}

async fn make(
    Shared(state): Shared<State>,
    mut params: Params,
    mut change: Mutation<NewAppInstance>,
) -> Result<Response, ApiError> {
    let wait = wait::asked(&mut params);
    params.finish()?;
    let caller = change.caller.clone();
    let version = held_version(&mut change.tx, &change.body.app_slug, &change.body.version).await?;
    let wish = wish(&change.body);
    let decision = deployment::decide(&mut change.tx, place(&caller)?, &version, &wish, Purpose::New).await?;
    let id = insert(&mut change, &version, &decision, &wish).await?;
    let mut started = start(&state, &mut change.tx, &caller, id).await?;
    let row = table::find(&mut change.tx, id).await?;
    let row = row.ok_or_else(|| ApiError::internal(&"an instance that was just made is gone"))?;
    record(&row);
    let made = shown(&mut change.tx, row).await?;
    let handle = handle_of_run(&mut change.tx, caller.scope, started.id).await?;
    let told = Change::of("app_instance", id).to(&made);
    let answer = change.commit(told, accepted::<table::AppInstance>(made, handle)?).await?;
    let run = started.id;
    started.begin();
    match wait {
        Some(wait) => settled::<table::AppInstance>(&state, &caller, &Id::of(id), run, wait, answer).await,
        None => Ok(answer),
    }
}

/// Held for use: others may deploy it at the same time, and nobody may retire it.
pub(super) async fn held_version(
    conn: &mut PgConnection,
    slug: &str,
    number: &str,
) -> Result<AppVersion, ApiError> {
    if let Some(version) = app_versions::hold_for_use(conn, slug, number).await? {
        return Ok(version);
    }
    let known = apps::find(conn, slug).await?.is_some();
    Err(ApiError::plain(if known { ErrorCode::VersionNotFound } else { ErrorCode::AppNotFound }))
}

pub(super) fn wish(asked: &NewAppInstance) -> Wish {
    let WantedResources { gpu_count, cpu_cores, memory_gib, host_port } = asked.resources.unwrap_or_default();
    Wish {
        operating_mode: asked.operating_mode,
        control_plane_scope: asked.control_plane_scope,
        config: asked.config.clone().map(Value::Object),
        placement_intent: asked.placement_intent.clone().map(Value::Object),
        resources: Wanted { gpu_count, cpu_cores, memory_gib },
        host_port,
        variant: asked.variant.clone(),
        artifact_id: asked.artifact_id,
        packages: asked.packages.clone(),
        credentials: asked.credentials.clone(),
    }
}

async fn insert(
    change: &mut Mutation<NewAppInstance>,
    version: &AppVersion,
    decision: &Decision,
    wish: &Wish,
) -> Result<Uuid, ApiError> {
    let id = Uuid::now_v7();
    let request = Request {
        id,
        place: place(&change.caller)?,
        display_name: &change.body.display_name,
        created_by: change.caller.principal().id,
        correlation_id: &change.caller.context.correlation_id.to_string(),
    };
    deployment::write(&mut change.tx, request, version, decision, wish).await?;
    Ok(id)
}

/// The run, and then the word that somebody asked for the instance.
async fn start(
    state: &State,
    conn: &mut PgConnection,
    caller: &Caller,
    instance: Uuid,
) -> Result<Started, ApiError> {
    let (org_id, project_id) = place(caller)?;
    let options = Start {
        project_id,
        org_id: Some(org_id),
        correlation_id: caller.context.correlation_id.to_string(),
        traceparent: caller.context.traceparent(),
        target: Some(target(instance)),
        ..Start::default()
    };
    let started = state.engine.start(conn, &DeployInstance::new(instance, 1), options).await?;
    if let Some(row) = table::find(conn, instance).await? {
        let (kind, data) = (EventType::InstanceRequested, public(&row, "deploy"));
        let event =
            NewEvent::of_project((org_id, project_id), kind, instance, &data, caller.context.thread());
        outbox::insert(conn, &event).await?;
    }
    Ok(started)
}
