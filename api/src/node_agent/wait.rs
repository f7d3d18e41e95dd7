//! `GET /internal/v1/nodes/{id}/tasks/wait`: the next task, signed here and now, or nothing when the time is up.

use axum::extract::State as Shared;
use chrono::TimeDelta;
use clients::seal::Sealer;
use node_protocol::{Envelope, Secrets, Signed, Task};
use serde::{Deserialize, Serialize};
use store::node_tasks::{self, NodeTask};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;
use uuid::Uuid;

use super::LEASE;
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;
use crate::wait::{self as waits, LONGEST};

/// A task is good for this long after it was handed out; it is signed afresh the next time.
const GOOD_FOR: TimeDelta = TimeDelta::minutes(5);

#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct NextTask {
    /// `null` when there is nothing to do.
    task: Option<Signed>,
}

pub(crate) fn wait() -> Endpoint {
    Endpoint::new("wait_for_node_task", "The node's next task, as soon as there is one", next)
        .query("wait", text_like(waits::PATTERN), "How long to wait for one: 30s, at most 60s.")
        .answers::<NextTask>(200, "The next task, or none.")
}

async fn next(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<NextTask>, ApiError> {
    let within = waits::asked(&mut params).unwrap_or_default().min(LONGEST);
    params.finish()?;
    let node = caller.principal().id;
    let deadline = Instant::now() + within;
    let place = state.tasks.place(node, &state.engine);
    loop {
        if let Some(task) = hand_out(&state, node).await? {
            return Ok(Json(NextTask { task: Some(task) }));
        }
        tokio::select! {
            called = timeout_at(deadline, place.called()) => if called.is_err() { break },
            // Not an empty answer: whoever gets that asks again at once.
            () = state.draining.cancelled() => return Err(ApiError::unavailable("The process is stopping.")),
        }
    }
    Ok(Json(NextTask { task: None }))
}

async fn hand_out(state: &State, node: Uuid) -> Result<Option<Signed>, ApiError> {
    let mut tx = state.write().await?;
    let Some(task) = node_tasks::hand_out(&mut tx, node, LEASE).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    let (key, _) = state.signers.active(&mut tx).await?;
    let envelope = envelope(state, &task)?;
    let signed = Signed::sign(&envelope, &key).map_err(|fault| ApiError::internal(&fault))?;
    tx.commit().await?;
    Ok(Some(signed))
}

fn envelope(state: &State, task: &NodeTask) -> Result<Envelope, ApiError> {
    let now = state.keys.clock.now();
    Ok(Envelope {
        task_id: task.id,
        node_id: task.node_id,
        idempotency_key: task.idempotency_key.clone(),
        instance_id: task.instance_id.or_else(|| Task::is_of_the_node(&task.kind).then_some(task.node_id)),
        generation: task.generation,
        epoch: task.epoch,
        correlation_id: task.correlation_id.clone(),
        issued_at: now,
        expires_at: now + GOOD_FOR,
        lease_seconds: u32::try_from(LEASE.num_seconds()).unwrap_or(u32::MAX),
        kind: task.kind.clone(),
        input: task.input.clone(),
        secrets: secrets(state.signers.sealer(), task)?,
    })
}

/// What was sealed when the task was made is opened only now, on its way to the one node it is for.
fn secrets(sealer: &Sealer, task: &NodeTask) -> Result<Secrets, ApiError> {
    let Some(sealed) = &task.sealed else { return Ok(Secrets::default()) };
    let bound_to = node_tasks::sealed_for(task.id);
    let opened = sealer.open(sealed, &bound_to).map_err(|fault| ApiError::internal(&fault))?;
    serde_json::from_slice(opened.expose())
        .map_err(|_| ApiError::internal(&"a task's secrets cannot be read"))
}
