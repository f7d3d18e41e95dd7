//! `GET …/workflows/{id}`: one run with its steps and attempts; with `?wait=`, once it has settled.

use api_types::{RunStatus, WorkflowRunDetail};
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Scope};
use engine::inspect;
use sqlx::PgConnection;
use store::node_tasks;
use uuid::Uuid;

use super::{covers, present};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag;
use crate::params::Params;
use crate::path::RunId;
use crate::state::State;
use crate::wait;

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_workflow", "A run with its steps and attempts", run)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .answers::<WorkflowRunDetail>(200, "The run; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .answers::<WorkflowRunDetail>(202, "With `wait`: the time is up and the run has not settled.")
        .refuses(&[ErrorCode::WorkflowNotFound])
}

async fn run(
    Shared(state): Shared<State>,
    caller: Caller,
    RunId(id): RunId,
    mut params: Params,
) -> Result<Response, ApiError> {
    let wait = wait::asked(&mut params);
    params.finish()?;
    let mut status = StatusCode::OK;
    if let Some(wait) = wait {
        // Only a run the caller may see is worth waiting for.
        let seen = wait::look(&state, id).await?.filter(|pulse| covers(caller.scope, pulse.project_id));
        if seen.is_some() && !wait::until_settled(&state, id, wait).await? {
            status = StatusCode::ACCEPTED;
        }
    }
    let mut tx = state.read().await?;
    let body = representation(&state, &mut tx, caller.scope, id).await?;
    tx.rollback().await?;
    let bytes = serde_json::to_vec(&body).map_err(|error| ApiError::internal(&error))?;
    let headers = [(header::CONTENT_TYPE, "application/json".to_owned()), (header::ETAG, etag::tag(&bytes))];
    Ok((status, headers, bytes).into_response())
}

/// The run as this route shows it. Changes guarded by `If-Match` compare against the tag of the same value.
pub(super) async fn representation(
    state: &State,
    conn: &mut PgConnection,
    scope: Scope,
    id: Uuid,
) -> Result<WorkflowRunDetail, ApiError> {
    let found = inspect::run(conn, id).await?.filter(|detail| covers(scope, detail.run.project_id));
    let detail = found.ok_or_else(|| ApiError::plain(ErrorCode::WorkflowNotFound))?;
    let mut shown = present::detail(detail, &state.engine.kinds());
    if shown.run.status == RunStatus::Waiting {
        present::how_far(&mut shown.steps, &node_tasks::progress_of(conn, id).await?);
    }
    Ok(shown)
}
