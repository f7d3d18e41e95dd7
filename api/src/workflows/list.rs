//! `GET …/workflows` and `GET A/workflows/stuck`: pages of runs, newest first.

use std::fmt::Display;

use api_types::{Page, RunStatus, StuckCode, WorkflowRun};
use axum::Json;
use axum::extract::State as Shared;
use domain::CorrelationId;
use engine::inspect::{RunFilter, runs};
use engine::{Cause, RunState};
use utoipa::PartialSchema;
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use super::present;
use crate::endpoint::{Endpoint, text, text_as};
use crate::error::ApiError;
use crate::params::Params;
use crate::scope::Scope;
use crate::state::State;

const LIMIT: i64 = 50;
const MOST: i64 = 200;

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
        .query("kind", text(), "Only runs of this workflow.")
        .query("status", Vec::<RunStatus>::schema(), "Only runs in one of these states, separated by commas.")
        .query("subject", text(), "Only runs about this resource.")
        .query("correlation_id", text(), "Only runs set off under this id.")
        .query("since", text_as(KnownFormat::DateTime), "Only runs created at this time or later.")
        .query("cause", StuckCode::schema(), "Only runs that do not advance for this reason.")
        .query(
            "project_id",
            text_as(KnownFormat::Uuid),
            "Only runs of this project; needed only under `/admin`.",
        )
}

async fn all(
    state: Shared<State>,
    scope: Scope,
    params: Params,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    page(state.0, read_filter(params, scope, false)?).await
}

async fn only_stuck(
    state: Shared<State>,
    scope: Scope,
    params: Params,
) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    page(state.0, read_filter(params, scope, true)?).await
}

async fn page(state: State, mut filter: RunFilter) -> Result<Json<Page<WorkflowRun>>, ApiError> {
    let limit = filter.limit;
    filter.limit += 1;
    let mut tx = state.read().await?;
    let found = runs(&mut tx, &filter).await?;
    tx.rollback().await?;
    let page = Page::cut(found, limit.unsigned_abs() as usize, |last| cursor(last.id));
    Ok(Json(Page {
        items: page.items.into_iter().map(present::run).collect(),
        next_cursor: page.next_cursor,
    }))
}

fn read_filter(mut params: Params, scope: Scope, stuck: bool) -> Result<RunFilter, ApiError> {
    let limit = params.parsed("limit", format!("a number from 1 to {MOST}")).unwrap_or(LIMIT);
    if !(1..=MOST).contains(&limit) {
        params.problem("limit", format!("must be a number from 1 to {MOST}"));
    }
    let before = params.text("cursor").and_then(|text| {
        let id = before(&text);
        if id.is_none() {
            params.problem("cursor", "is not a cursor of this list");
        }
        id
    });
    let correlation_id =
        params.parsed::<CorrelationId>("correlation_id", "1 to 128 characters of [A-Za-z0-9._:-]");
    let project: Option<Uuid> = params.parsed("project_id", "a UUID");
    if project.is_some_and(|project| !scope.covers(project)) {
        params.problem("project_id", "differs from the project in the path");
    }
    let filter = RunFilter {
        project: scope.project.or(project),
        kind: params.text("kind"),
        states: params.list("status", one_of(RunState::ALL)),
        target: params.text("subject"),
        correlation_id: correlation_id.map(String::from),
        since: params.parsed("since", "an RFC 3339 time such as 2026-01-31T12:00:00Z"),
        cause: params.parsed("cause", one_of(Cause::ALL.map(Cause::as_str))),
        stuck,
        before,
        limit,
        ..RunFilter::default()
    };
    params.finish()?;
    Ok(filter)
}

fn one_of(words: impl IntoIterator<Item = impl Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    format!("one of {}", words.join(", "))
}

/// Cursors are opaque to callers. The prefix names this list's format, so that it can change.
fn cursor(last: Uuid) -> String {
    format!("r1.{}", last.simple())
}

fn before(cursor: &str) -> Option<Uuid> {
    Uuid::try_parse(cursor.strip_prefix("r1.")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_run() {
        let id = Uuid::now_v7();
        assert_eq!(before(&cursor(id)), Some(id));
    }

    #[test]
    fn texts_that_are_no_cursor_lead_nowhere() {
        for text in
            ["", "r1.", "r1.zz", "r2.00000000000000000000000000000000", "00000000000000000000000000000000"]
        {
            assert_eq!(before(text), None, "{text}");
        }
    }
}
