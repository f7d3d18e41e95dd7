//! `POST A/workflows/bulk-retry`: after a common cause is repaired, retry what it stopped. One transaction, bounded,
//! one verdict per run; with `dry_run` nothing changes.

use api_types::{BulkRetry, BulkRetryFilter, BulkRetryReport, BulkVerdict, Verdict};
use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Scope};
use engine::inspect::{RunFilter, RunView, runs};
use engine::{Asker, RunState};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::present;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

const MOST: usize = 200;

pub(crate) fn bulk_retry() -> Endpoint {
    Endpoint::new("bulk_retry_workflows", "Retry many runs at once", retry_many)
        .body::<BulkRetry>()
        .exactly_one_of::<BulkRetry>(&["ids", "filter"])
        .answers::<BulkRetryReport>(200, "One verdict per run.")
}

async fn retry_many(
    Shared(state): Shared<State>,
    mut change: Mutation<BulkRetry>,
) -> Result<Response, ApiError> {
    let wanted = Wanted::of(&change.body)?;
    let limit = change.body.limit.map_or(MOST, usize::from);
    let asker = change.caller.asker(change.body.reason.clone());
    let scope = change.caller.scope;
    let (chosen, more) = wanted.choose(&mut change.tx, limit).await?;
    let before = as_they_are(&mut change.tx, &chosen).await?;
    let mut results = Vec::with_capacity(chosen.len());
    for id in chosen {
        results.push(retry_one(&state, &mut change.tx, scope, id, &asker).await?);
    }
    let dry_run = change.body.dry_run;
    if dry_run {
        // A rehearsal is the real thing taken back, so its verdicts are what would happen.
        change.abandon().await?;
        results.iter_mut().for_each(as_rehearsed);
        return Ok(Json(BulkRetryReport { dry_run, results, more }).into_response());
    }
    let report = BulkRetryReport { dry_run, results, more };
    let told = told(&before, &report.results, asker.reason.as_deref());
    let answer = change.commit_each(told, Answer::ok(&report)?).await?;
    state.engine.wake();
    Ok(answer)
}

enum Wanted<'a> {
    Named(&'a [Uuid]),
    Matching(&'a BulkRetryFilter),
}

impl<'a> Wanted<'a> {
    fn of(body: &'a BulkRetry) -> Result<Wanted<'a>, ApiError> {
        match (&body.ids, &body.filter) {
            (Some(ids), None) => Ok(Wanted::Named(ids)),
            (None, Some(filter)) if says_which(filter) => Ok(Wanted::Matching(filter)),
            (None, Some(_)) => Err(ApiError::invalid(
                "/filter",
                "must have a project, a kind, a cause or an error: retrying everything is never meant",
            )),
            _ => Err(ApiError::invalid("", "must have exactly one of ids and filter")),
        }
    }

    /// The runs to retry in the order of their ids, which is the order in which run rows are locked everywhere, and
    /// whether the limit kept others out.
    async fn choose(self, conn: &mut PgConnection, limit: usize) -> sqlx::Result<(Vec<Uuid>, bool)> {
        let mut ids: Vec<Uuid> = match self {
            Wanted::Named(ids) => ids.to_vec(),
            Wanted::Matching(filter) => {
                let found = runs(conn, &stopped_runs(filter, limit)).await?;
                found.into_iter().map(|run| run.id).collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        let more = ids.len() > limit;
        ids.truncate(limit);
        Ok((ids, more))
    }
}

async fn as_they_are(conn: &mut PgConnection, chosen: &[Uuid]) -> sqlx::Result<Vec<RunView>> {
    let filter = RunFilter { ids: Some(chosen.to_vec()), limit: chosen.len() as i64, ..RunFilter::default() };
    runs(conn, &filter).await
}

/// One entry of the audit log for each run that is retried, under its own project. What was refused did not change.
fn told(before: &[RunView], results: &[BulkVerdict], reason: Option<&str>) -> Vec<Change> {
    let of_one = |result: &BulkVerdict| {
        let now = result.workflow.as_ref()?;
        let told = Change::of("workflow", now.id)
            .to(&json!({ "id": now.id, "status": now.status }))
            .because(reason.map(str::to_owned));
        Some(match before.iter().find(|run| run.id == result.id) {
            Some(run) => told
                .from(&json!({ "id": run.id, "status": present::status(run.state) }))
                .owned_by(run.org_id, run.project_id),
            None => told,
        })
    };
    results.iter().filter_map(of_one).collect()
}

fn says_which(filter: &BulkRetryFilter) -> bool {
    let BulkRetryFilter { project_id, kind, cause, error_signature, ended: _, since: _ } = filter;
    project_id.is_some() || kind.is_some() || cause.is_some() || error_signature.is_some()
}

/// One more than the limit is read, to know whether there are others. What ended is tried again once, and not where something
/// else came after it.
fn stopped_runs(filter: &BulkRetryFilter, limit: usize) -> RunFilter {
    let states = if filter.ended {
        vec![RunState::Failed, RunState::Compensated]
    } else {
        vec![RunState::Paused, RunState::Stuck]
    };
    RunFilter {
        project: filter.project_id,
        kind: filter.kind.clone(),
        states,
        latest: filter.ended,
        since: filter.since,
        cause: filter.cause.map(present::cause),
        error: filter.error_signature.clone(),
        limit: limit as i64 + 1,
        ..RunFilter::default()
    }
}

async fn retry_one(
    state: &State,
    conn: &mut PgConnection,
    scope: Scope,
    id: Uuid,
    asker: &Asker,
) -> Result<BulkVerdict, ApiError> {
    match state.engine.retry(conn, id, asker).await.map_err(ApiError::from) {
        Ok(run) => {
            let workflow = Some(present::handle(&run, scope));
            Ok(BulkVerdict { id, verdict: Verdict::Retried, workflow, code: None, message: None })
        }
        // What stands in this run's own way is a verdict; trouble with the database ends the whole request.
        Err(error) if is_of_one_run(error.code) => Ok(BulkVerdict {
            id,
            verdict: Verdict::Refused,
            workflow: None,
            code: Some(error.code),
            message: Some(error.message),
        }),
        Err(error) => Err(error),
    }
}

fn is_of_one_run(code: ErrorCode) -> bool {
    use ErrorCode::{OperationInProgress, StateConflict, WorkflowNotFound};
    matches!(code, WorkflowNotFound | StateConflict | OperationInProgress)
}

fn as_rehearsed(verdict: &mut BulkVerdict) {
    if verdict.verdict == Verdict::Retried {
        verdict.verdict = Verdict::WouldRetry;
        verdict.workflow = None;
    }
}
