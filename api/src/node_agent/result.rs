//! `POST /internal/v1/nodes/{id}/tasks/{task_id}/progress|result`. A result and the signal to the run that waits for it
//! are one commit, with what it says of the workloads that it brought; told again, it changes nothing.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use domain::{ErrorCode, TaskStatus};
use engine::EngineError;
use node_protocol::{Health, Launched, Progress, TaskResult, Usage, WorkloadReport, WorkloadState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::{node_tasks, nodes};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{LEASE, Said, TaskId};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct ResultTaken {
    /// What the task is now: of two results, the first stands.
    status: TaskStatus,
}

pub(crate) fn progress() -> Endpoint {
    Endpoint::new("report_node_task_progress", "The node still works on the task", go_on)
        .body::<Progress>()
        .answers_nothing("The lease begins anew.")
        .refuses(&[ErrorCode::NodeTaskNotFound, ErrorCode::StateConflict])
}

pub(crate) fn result() -> Endpoint {
    Endpoint::new("report_node_task_result", "What became of the task", finish)
        .body::<TaskResult>()
        .answers::<ResultTaken>(200, "The result is kept, and the run that waits for it is woken.")
        .refuses(&[ErrorCode::NodeTaskNotFound, ErrorCode::StateConflict])
}

async fn go_on(
    Shared(state): Shared<State>,
    caller: Caller,
    task: TaskId,
    Said(told): Said<Progress>,
) -> Result<StatusCode, ApiError> {
    let node = caller.principal().id;
    let progress = serde_json::to_value(&told).map_err(|error| ApiError::internal(&error))?;
    let mut tx = state.write().await?;
    if !node_tasks::progressed(&mut tx, node, task.0, &progress, LEASE).await? {
        let status = status_of(&mut tx, node, task.0).await?;
        return Err(ApiError::new(ErrorCode::StateConflict, "Nobody works on the task any more.")
            .with("state", status.as_str()));
    }
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn finish(
    Shared(state): Shared<State>,
    caller: Caller,
    task: TaskId,
    Said(told): Said<TaskResult>,
) -> Result<Json<ResultTaken>, ApiError> {
    let node = caller.principal().id;
    let outcome = serde_json::to_value(&told.outcome).map_err(|error| ApiError::internal(&error))?;
    let mut tx = state.write().await?;
    if told.outcome.serving().is_some() {
        // Nodes are locked before instances.
        nodes::find_locked(&mut tx, node).await?;
    }
    let finished = node_tasks::finish(&mut tx, node, task.0, told.outcome.status(), &outcome).await?;
    let Some(finished) = finished else {
        let status = status_of(&mut tx, node, task.0).await?;
        tx.rollback().await?;
        if status.is_finished() {
            return Ok(Json(ResultTaken { status }));
        }
        return Err(ApiError::new(ErrorCode::StateConflict, "The task was not handed out.")
            .with("state", status.as_str()));
    };
    if finished.idempotency_key != told.idempotency_key {
        return Err(ApiError::invalid("/idempotency_key", "is not the task's"));
    }
    if let (Some(instance), Some(members)) = (finished.instance_id, told.outcome.serving()) {
        let launch = (instance, finished.generation);
        nodes::add_to_report(&mut tx, node, launch, &json!(reported(launch, members))).await?;
    }
    if let (Some(run), Some(signal)) = (finished.run_id, &finished.signal) {
        tell(&state, &mut tx, run, signal, task.0, &outcome).await?;
    }
    tx.commit().await?;
    state.engine.wake();
    Ok(Json(ResultTaken { status: told.outcome.status() }))
}

/// How the workloads of a launch are: whoever learns that they serve finds them healthy.
fn reported((instance_id, generation): (Uuid, i64), members: &[Launched]) -> Vec<WorkloadReport> {
    let report = |member: &Launched| WorkloadReport {
        instance_id,
        member: member.member.clone(),
        generation,
        state: WorkloadState::Running,
        health: if member.serves { Health::Healthy } else { Health::Unknown },
        usage: Usage::default(),
    };
    members.iter().map(report).collect()
}

/// A run that is gone, or has given up waiting, needs no telling: the task's row keeps the result.
async fn tell(
    state: &State,
    conn: &mut PgConnection,
    run: Uuid,
    signal: &str,
    task: Uuid,
    outcome: &Value,
) -> Result<(), ApiError> {
    match state.engine.signal(conn, run, signal, &task.to_string(), outcome).await {
        Ok(_) | Err(EngineError::NoSuchRun(_)) => Ok(()),
        Err(EngineError::Database(error)) => Err(error.into()),
        Err(EngineError::Payload { what, error }) => {
            Err(ApiError::new(ErrorCode::PayloadTooLarge, format!("The {what} {error}.")))
        }
    }
}

async fn status_of(conn: &mut PgConnection, node: Uuid, task: Uuid) -> Result<TaskStatus, ApiError> {
    let found = node_tasks::find(conn, task).await?.filter(|found| found.node_id == node);
    Ok(found.ok_or_else(|| ApiError::plain(ErrorCode::NodeTaskNotFound))?.status()?)
}
