//! `GET …/workflows` and `GET A/workflows/stuck`: pages of runs, newest first.

use std::fmt::Display;

use api_types::{Page, RunStatus, StuckCode, WorkflowRun};
use axum::extract::State as Shared;
use domain::{CorrelationId, Scope};
use engine::inspect::{RunFilter, runs};
use engine::{Cause, RunState};
use utoipa::PartialSchema;
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use super::{covers, present};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, switch, text_as, text_like, word, words};
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    let endpoint = Endpoint::new("list_workflows", "Workflow runs, newest first", all);
    with_filters(endpoint).answers_page::<WorkflowRun>("A page of runs.")
}

pub(crate) fn stuck() -> Endpoint {
    let endpoint =
        Endpoint::new("list_stuck_workflows", "Runs that are paused, stuck or overdue", only_stuck);
    with_filters(endpoint).answers_page::<WorkflowRun>("A page of runs that want a person's eye.")
}

fn with_filters(endpoint: Endpoint) -> Endpoint {
    endpoint
        .query("kind", word(), "Only runs of this workflow.")
        .query("status", words::<RunStatus>(), "Only runs in one of these states, separated by commas.")
        .query("subject", word(), "Only runs about this resource.")
        .query("correlation_id", text_like(CorrelationId::PATTERN), "Only runs set off under this id.")
        .query("since", text_as(KnownFormat::DateTime), "Only runs created at this time or later.")
        .query(
            "latest",
            switch(),
            "Only runs that were neither tried again nor followed by another about the same resource.",
        )
        .query("cause", StuckCode::schema(), "Only runs that do not advance for this reason.")
        .query(
            "project_id",
            text_as(KnownFormat::Uuid),
            "Only runs of this project; needed only under `/admin`.",
        )
}

async fn all(
    state: Shared<State>,
    caller: Caller,
    params: Params,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    page(state.0, caller.scope, params, false).await
}

async fn only_stuck(
    state: Shared<State>,
    caller: Caller,
    params: Params,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    page(state.0, caller.scope, params, true).await
}

async fn page(
    state: State,
    scope: Scope,
    mut params: Params,
    stuck: bool,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    let paging = Paging::read(&mut params, "r1");
    let filter =
        RunFilter { stuck, before: paging.after, limit: paging.rows(), ..read_filter(params, scope)? };
    let mut tx = state.read().await?;
    let found = runs(&mut tx, &filter).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(found, |run| run.id, present::run)))
}

fn read_filter(mut params: Params, scope: Scope) -> Result<RunFilter, ApiError> {
    let correlation_id =
        params.parsed::<CorrelationId>("correlation_id", "1 to 128 characters of [A-Za-z0-9._:-]");
    let project: Option<Uuid> = params.parsed("project_id", "a UUID");
    if project.is_some_and(|project| !covers(scope, project)) {
        params.problem("project_id", "differs from the project in the path");
    }
    let filter = RunFilter {
        project: scope.project().or(project),
        kind: params.text("kind"),
        states: params.list("status", one_of(RunState::ALL)),
        target: params.text("subject"),
        correlation_id: correlation_id.map(String::from),
        since: params.parsed("since", "an RFC 3339 time such as 2026-01-31T12:00:00Z"),
        cause: params.parsed("cause", one_of(Cause::ALL.map(Cause::as_str))),
        latest: params.parsed("latest", "true or false").unwrap_or_default(),
        ..RunFilter::default()
    };
    params.finish()?;
    Ok(filter)
}

fn one_of(words: impl IntoIterator<Item = impl Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    format!("one of {}", words.join(", "))
}
