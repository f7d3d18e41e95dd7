//! `POST P/app-instances/{id}/decommission`. It pre-empts: whatever else acts on the instance is asked to cancel, and this
//! waits for its undo. Asked again it answers the same run; once done, the last one with 200.

use api_types::{AppInstanceWithRun, Operate, WorkflowHandle};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, EventType, InstanceStatus, Scope, event::NewEvent};
use engine::inspect::{RunFilter, runs};
use engine::{Start, StartError, Workflow};
use serde_json::json;
use sqlx::PgConnection;
use store::{app_instances as table, outbox};
use uuid::Uuid;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::target;

use super::{held, shown};
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::path::Id;
use crate::state::State;
use crate::wait;
use crate::workflows::{handle_of_run, present};

pub(crate) fn decommission() -> Endpoint {
    Endpoint::new("decommission_app_instance", "Take the instance away, with proof", end)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .header("If-Match", "Only if the instance still has this tag.")
        .body::<Operate>()
        .answers::<AppInstanceWithRun>(202, "Begun; `Location` is where to follow the run.")
        .answers::<AppInstanceWithRun>(
            200,
            "It is over: with `wait` the run has settled, or it ended before.",
        )
        .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::PreconditionFailed])
}

async fn end(
    Shared(state): Shared<State>,
    (id, if_match, mut params): (Id, IfMatch, Params),
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let wait = wait::asked(&mut params);
    params.finish()?;
    let instance = held(&mut change.tx, &change.caller, id).await?;
    let before = shown(&mut change.tx, instance.clone()).await?;
    if_match.require(&before)?;
    let scope = change.caller.scope;
    if let Some(run) = already(&mut change.tx, &instance, scope).await? {
        let status = if before.status.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
        let answer = answer(status, &AppInstanceWithRun { instance: before.clone(), workflow: run.clone() })?;
        let answer = change.commit(Change::of("app_instance", before.id), answer).await?;
        return settled(&state, scope, run.id, wait, answer).await;
    }
    let run = begin(&state, &mut change, &instance).await?;
    let now = held(&mut change.tx, &change.caller, id).await?;
    let after = shown(&mut change.tx, now).await?;
    let workflow = handle_of_run(&mut change.tx, scope, run.id).await?;
    let reason = change.body.reason.take();
    let told = Change::of("app_instance", after.id).from(&before).to(&after).because(reason);
    let accepted = answer(StatusCode::ACCEPTED, &AppInstanceWithRun { instance: after, workflow })?;
    let answer = change.commit(told, accepted).await?;
    let (id, mut run) = (run.id, run);
    run.begin();
    settled(&state, scope, id, wait, answer).await
}

/// The run that ends the instance already, or has ended it.
async fn already(
    conn: &mut PgConnection,
    instance: &table::AppInstance,
    scope: Scope,
) -> Result<Option<WorkflowHandle>, ApiError> {
    let ending =
        matches!(instance.status()?, InstanceStatus::Decommissioning | InstanceStatus::Decommissioned);
    if !ending {
        return Ok(None);
    }
    let filter = RunFilter {
        kind: Some(DecommissionInstance::NAME.to_owned()),
        target: Some(target(instance.id)),
        limit: 1,
        ..RunFilter::default()
    };
    let newest = runs(conn, &filter).await?.pop();
    Ok(newest.map(|run| present::handle_of(&present::run(run), scope)))
}

/// In the one transaction: the generation rises, the state moves, the run starts as the target's next holder.
async fn begin(
    state: &State,
    change: &mut Mutation<Operate>,
    instance: &table::AppInstance,
) -> Result<engine::Started, ApiError> {
    let generation = table::next_generation(&mut change.tx, instance.id).await?;
    let to = InstanceStatus::Decommissioning;
    table::move_to(&mut change.tx, instance.id, instance.status()?, to, None).await?;
    let correlation_id = change.caller.context.correlation_id.to_string();
    let options = Start {
        project_id: instance.project_id,
        org_id: Some(instance.org_id),
        correlation_id: correlation_id.clone(),
        trace_id: change.caller.context.trace_parent.as_ref().map(|parent| parent.trace_id().to_owned()),
        target: Some(target(instance.id)),
        supersede: true,
        ..Start::default()
    };
    let workflow = DecommissionInstance { instance: instance.id, generation };
    let started = state.engine.start(&mut change.tx, &workflow, options).await.map_err(refused)?;
    let owner = (instance.org_id, instance.project_id);
    let data = json!({
        "id": instance.id, "app_slug": instance.app_slug, "version": instance.version, "status": to,
        "operation": "decommission",
    });
    let event = NewEvent::of_project(
        owner,
        EventType::InstanceDecommissionRequested,
        instance.id,
        &data,
        &correlation_id,
    );
    outbox::insert(&mut change.tx, &event).await?;
    Ok(started)
}

fn refused(error: StartError) -> ApiError {
    match error {
        StartError::TargetBusy(holder) => ApiError::plain(ErrorCode::OperationInProgress)
            .with("workflow_id", json!(holder.id))
            .with("kind", holder.kind)
            .with("status", holder.state.as_str()),
        StartError::Backlog => ApiError::plain(ErrorCode::RateLimited).retry_after(5),
        StartError::Pressure => ApiError::unavailable("The database does not keep up right now."),
        StartError::Engine(engine::EngineError::Database(error)) => error.into(),
        StartError::Engine(other) => ApiError::internal(&other),
    }
}

fn answer(status: StatusCode, body: &AppInstanceWithRun) -> Result<Answer, ApiError> {
    let answer = Answer::json(status, body)?.with(header::LOCATION, body.workflow.href.clone());
    Ok(if status == StatusCode::ACCEPTED { answer.with(header::RETRY_AFTER, "1".to_owned()) } else { answer })
}

async fn settled(
    state: &State,
    scope: Scope,
    run: Uuid,
    wait: Option<std::time::Duration>,
    answer: Response,
) -> Result<Response, ApiError> {
    let Some(wait) = wait else { return Ok(answer) };
    if !wait::until_settled(state, run, wait).await? {
        return Ok(answer);
    }
    let mut tx = state.read().await?;
    let workflow = handle_of_run(&mut tx, scope, run).await?;
    let filter = RunFilter { ids: Some(vec![run]), limit: 1, ..RunFilter::default() };
    let subject = runs(&mut tx, &filter).await?.pop().and_then(|run| run.target);
    let id = subject.and_then(|subject| subject.rsplit(':').next()?.parse::<Uuid>().ok());
    let instance = match id {
        Some(id) => table::find(&mut tx, id).await?,
        None => None,
    };
    let instance = instance.ok_or_else(|| ApiError::plain(ErrorCode::AppInstanceNotFound))?;
    let instance = shown(&mut tx, instance).await?;
    tx.rollback().await?;
    let location = [(header::LOCATION, workflow.href.clone())];
    Ok((location, Json(AppInstanceWithRun { instance, workflow })).into_response())
}
