//! `POST A/allocations/{id}/release`: takes an allocation back. What stands on it is decommissioned first, by a run that the
//! answer names; where nothing does, it is released at once. Asking again while that run is under way changes nothing.

use std::time::Duration;

use api_types::{Allocation, AllocationWithRun, Operate, ReleasedAllocation};
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{AllocationStatus, ErrorCode};
use engine::{Start, StartError, Started};
use sqlx::PgConnection;
use store::{allocations as table, app_instances};
use uuid::Uuid;
use workflows::allocation::{ReleaseAllocation, target};

use super::shown;
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;
use crate::state::State;
use crate::wait::{self, Wait};
use crate::workflows::handle_of_run;

pub(crate) fn release() -> Endpoint {
    Endpoint::new("release_allocation", "Take an allocation back", take_back)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .header("If-Match", "Only if the allocation still has this tag.")
        .body::<Operate>()
        .answers::<ReleasedAllocation>(
            200,
            "The allocation, released; `ETag` tags it. With `wait`: the run has settled; `workflow.status` says how.",
        )
        .answers::<AllocationWithRun>(202, "Its instances are decommissioned first; `Location` is the run.")
        .refuses(&[ErrorCode::AllocationNotFound, ErrorCode::PreconditionFailed])
}

async fn take_back(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    Wait(wait): Wait,
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let before = held(&mut change.tx, id).await?;
    if_match.require(&before)?;
    let is_empty = app_instances::on_allocation(&mut change.tx, before.id).await?.is_empty();
    if before.status != AllocationStatus::Released {
        leave(&mut change.tx, &before, is_empty).await?;
    }
    let after = held(&mut change.tx, id).await?;
    let reason = change.body.reason.take();
    let told = Change::of("allocation", after.id)
        .owned_by(after.org_id, after.project_id)
        .from(&before)
        .to(&after)
        .because(reason);
    if after.status == AllocationStatus::Released {
        return change.commit(told, Answer::ok(&after)?.tagged()).await;
    }
    let caller = change.caller.clone();
    let (run, started) = start(&state, &mut change.tx, &caller, &after).await?;
    let workflow = handle_of_run(&mut change.tx, caller.scope, run).await?;
    let location = workflow.href.clone();
    let body = AllocationWithRun { allocation: after, workflow };
    let answer = Answer::json(StatusCode::ACCEPTED, &body)?.with(header::LOCATION, location);
    let answer = change.commit(told, answer.with(header::RETRY_AFTER, "1".to_owned())).await?;
    if let Some(mut started) = started {
        started.begin();
    }
    match wait {
        Some(wait) => settled(&state, &caller, (id, run), wait, answer).await,
        None => Ok(answer),
    }
}

/// What became of it, or what was accepted when the time is up.
async fn settled(
    state: &State,
    caller: &Caller,
    (id, run): (Id, Uuid),
    wait: Duration,
    answer: Response,
) -> Result<Response, ApiError> {
    if !wait::until_settled(state, run, wait).await? {
        return Ok(answer);
    }
    let mut tx = state.write().await?;
    let allocation = held(&mut tx, id).await?;
    let workflow = handle_of_run(&mut tx, caller.scope, run).await?;
    tx.rollback().await?;
    let location = [(header::LOCATION, workflow.href.clone())];
    Ok((location, Json(ReleasedAllocation { allocation, workflow: Some(workflow) })).into_response())
}

async fn held(conn: &mut PgConnection, id: Id) -> Result<Allocation, ApiError> {
    let missing = ErrorCode::AllocationNotFound;
    let found = table::find_locked(conn, id.or(missing)?).await?;
    shown(found.ok_or_else(|| ApiError::plain(missing))?)
}

/// From here on nothing new is placed on it; where nothing stands there, it is given back.
async fn leave(conn: &mut PgConnection, before: &Allocation, is_empty: bool) -> Result<(), ApiError> {
    let releasing = AllocationStatus::Releasing;
    if before.status != releasing {
        table::move_to(conn, before.id, before.status, releasing).await?;
    }
    if is_empty {
        table::move_to(conn, before.id, releasing, AllocationStatus::Released).await?;
    }
    Ok(())
}

/// One run per allocation at a time: asked again while it is under way, it is the same. One that was cancelled before its turn
/// released nothing, so the next is a new one.
async fn start(
    state: &State,
    conn: &mut PgConnection,
    caller: &Caller,
    allocation: &Allocation,
) -> Result<(Uuid, Option<Started>), ApiError> {
    let options = Start {
        project_id: allocation.project_id,
        org_id: Some(allocation.org_id),
        correlation_id: caller.context.correlation_id.to_string(),
        traceparent: caller.context.traceparent(),
        target: Some(target(allocation.id)),
        ..Start::default()
    };
    match state.engine.start(conn, &ReleaseAllocation { allocation: allocation.id }, options).await {
        Ok(started) => Ok((started.id, Some(started))),
        Err(StartError::TargetBusy(holder)) => Ok((holder.id, None)),
        Err(error) => Err(error.into()),
    }
}
