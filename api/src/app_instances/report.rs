//! `POST P/app-instances/{id}/heartbeat` and `/events`: what an instance says of itself, by its own identity and nobody
//! else's. The first word of a workload is what a run waits for where the version's health is a heartbeat.

use api_types::{InstanceEventType, InstanceHeartbeat, InstanceReport, InstanceReported};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use domain::event::{EventType, NewEvent};
use domain::{ErrorCode, InstanceStatus};
use engine::EngineError;
use node_protocol::{Outcome, Output};
use serde_json::json;
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::app_instances::AppInstance;
use store::service_account_keys::Holder;
use store::{app_instance_heartbeats, app_instance_releases, outbox, service_account_keys};

use super::found;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Mutation};
use crate::node_agent::Said;
use crate::path::Id;
use crate::state::State;

/// An event is a word, not a file.
const MOST_BYTES: usize = 16 * 1024;

pub(crate) fn heartbeat() -> Endpoint {
    Endpoint::new("report_app_instance_heartbeat", "The instance lives; by its own identity only", live)
        .body::<InstanceHeartbeat>()
        .said_again()
        .answers_nothing("Heard.")
        .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::StateConflict])
}

pub(crate) fn report_event() -> Endpoint {
    Endpoint::new(
        "report_app_instance_event",
        "What the instance tells of itself; by its own identity only",
        tell,
    )
    .body::<InstanceReport>()
    .answers::<InstanceReported>(202, "Told on as an event of the project.")
    .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::StateConflict])
}

async fn live(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    Said(beat): Said<InstanceHeartbeat>,
) -> Result<StatusCode, ApiError> {
    let mut tx = state.write().await?;
    let instance = speaking(&mut tx, &caller, id).await?;
    let generation = speaker(&mut tx, &caller, &instance, beat.key_id.as_deref()).await?;
    hear(&state, &mut tx, &instance, generation).await?;
    tx.commit().await?;
    state.engine.wake();
    Ok(StatusCode::NO_CONTENT)
}

async fn tell(
    Shared(state): Shared<State>,
    id: Id,
    mut change: Mutation<InstanceReport>,
) -> Result<Response, ApiError> {
    let (caller, report) = (change.caller.clone(), &change.body);
    let size = serde_json::to_vec(&report.payload).map_err(|error| ApiError::internal(&error))?.len();
    if size > MOST_BYTES {
        return Err(ApiError::invalid("/payload", format!("must be at most {MOST_BYTES} bytes")));
    }
    let tx = &mut *change.tx;
    let instance = speaking(tx, &caller, id).await?;
    if report.event_type == InstanceEventType::Healthy {
        let generation = speaker(tx, &caller, &instance, None).await?;
        hear(&state, tx, &instance, generation).await?;
    }
    let data = json!({
        "id": instance.id, "app_slug": instance.app_slug, "version": instance.version,
        "event_type": report.event_type, "payload": report.payload,
    });
    let (owner, thread) = ((instance.org_id, instance.project_id), caller.context.thread());
    let event = NewEvent::of_project(owner, EventType::InstanceReported, instance.id, &data, thread);
    let event_id = outbox::insert(tx, &event).await?;
    let answer = Answer::json(StatusCode::ACCEPTED, &InstanceReported { event_id })?;
    let answer = change.heard(answer).await?;
    state.engine.wake();
    Ok(answer)
}

/// An instance that has ended says nothing any more.
async fn speaking(conn: &mut PgConnection, caller: &Caller, id: Id) -> Result<AppInstance, ApiError> {
    let instance = found(conn, caller, id).await?;
    let status = instance.status()?;
    if status == InstanceStatus::Decommissioned {
        let message = "The instance has ended.";
        return Err(ApiError::new(ErrorCode::StateConflict, message).with("state", status.as_str()));
    }
    Ok(instance)
}

/// The workload that was given the key by which the caller came in. Two may stand side by side, and one must not be believed to be
/// well because the other is. Only where the token does not say by which, the body may name it. Whoever has no key of a workload
/// speaks for what serves, or, before anything does, for what is about to.
async fn speaker(
    conn: &mut PgConnection,
    caller: &Caller,
    instance: &AppInstance,
    named: Option<&str>,
) -> Result<i64, ApiError> {
    let own = caller.standing.key_id.as_deref();
    if let (Some(own), Some(named)) = (own, named)
        && own != named
    {
        return Err(ApiError::invalid("/key_id", "is not the key that the token was made with"));
    }
    let holder = match own.or(named) {
        Some(key_id) => service_account_keys::holder_of(conn, caller.principal().id, key_id).await?,
        None => None,
    };
    match holder {
        Some(Holder { is_revoked: true, .. }) => {
            let message = "The key was revoked, because its workload is gone or is to go.";
            Err(ApiError::new(ErrorCode::StateConflict, message).with("state", "revoked"))
        }
        Some(Holder { generation, .. }) => Ok(generation),
        None if own.is_none() && named.is_some() => {
            Err(ApiError::invalid("/key_id", "is no key of a workload of this instance"))
        }
        None => {
            let release = app_instance_releases::find(conn, instance.id, Standing::Serving).await?;
            Ok(release.map_or(instance.generation, |release| release.generation))
        }
    }
}

/// Keeps the beat, and tells the run that waits for it.
async fn hear(
    state: &State,
    conn: &mut PgConnection,
    instance: &AppInstance,
    generation: i64,
) -> Result<(), ApiError> {
    let Some((run, signal)) = app_instance_heartbeats::beat(conn, instance.id, generation).await? else {
        return Ok(());
    };
    let healthy = json!(Outcome::Succeeded { output: Output::Healthy { tries: 0 } });
    match state.engine.signal(conn, run, &signal, "heartbeat", &healthy).await {
        Ok(_) | Err(EngineError::NoSuchRun(_)) => Ok(()),
        Err(EngineError::Database(error)) => Err(error.into()),
        Err(error) => Err(ApiError::internal(&error)),
    }
}
