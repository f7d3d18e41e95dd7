//! `GET P/app-instances/{id}/events` and `/operations`: what was told of the instance, and the runs that acted on it.

use api_types::{Page, WorkflowRun};
use axum::extract::State as Shared;
use domain::ErrorCode;
use domain::event::CloudEvent;
use engine::inspect::{RunFilter, runs};
use store::outbox::{self, Filter};
use workflows::instance::target;

use super::found;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;
use crate::workflows::present;

pub(crate) fn events() -> Endpoint {
    Endpoint::new("list_app_instance_events", "What was told of the instance, oldest first", told)
        .answers_page::<CloudEvent>("A page of events.")
        .refuses(&[ErrorCode::AppInstanceNotFound])
}

pub(crate) fn operations() -> Endpoint {
    Endpoint::new("list_app_instance_operations", "The runs that acted on the instance, newest first", acted)
        .answers_page::<WorkflowRun>("A page of runs.")
        .refuses(&[ErrorCode::AppInstanceNotFound])
}

async fn told(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    mut params: Params,
) -> Result<Json<Page<CloudEvent>>, ApiError> {
    let paging: Paging<i64> = Paging::read(&mut params, "instev2");
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let filter = Filter {
        project_id: instance.project_id,
        subject: Some(instance.id.to_string()),
        after: paging.after.unwrap_or_default(),
        limit: paging.rows(),
        ..Filter::default()
    };
    let all = outbox::told(&mut tx, &filter).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(all, CloudEvent::seq, |event| event)))
}

async fn acted(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    mut params: Params,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    let paging = Paging::read(&mut params, "instop1");
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let filter = RunFilter {
        project: caller.scope.project(),
        target: Some(target(instance.id)),
        before: paging.after,
        limit: paging.rows(),
        ..RunFilter::default()
    };
    let all = runs(&mut tx, &filter).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(all, |run| run.id, present::run)))
}
