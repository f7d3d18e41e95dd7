//! A page of runs, newest first. Every filter narrows an index scan; a page costs what it shows.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use super::{RunView, StuckCause, outstanding, word};
use crate::state::{Cause, RunState};

/// Which runs to show. Fields left empty do not filter.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub ids: Option<Vec<Uuid>>,
    pub project: Option<Uuid>,
    pub kind: Option<String>,
    pub states: Vec<RunState>,
    pub target: Option<String>,
    pub correlation_id: Option<String>,
    /// Created at this time or later.
    pub since: Option<DateTime<Utc>>,
    pub cause: Option<Cause>,
    /// Text that the error, or the evidence of the cause, contains.
    pub error: Option<String>,
    /// Only runs that are paused, stuck or overdue.
    pub stuck: bool,
    /// Only runs that were neither tried again nor followed by another one of the same target.
    pub latest: bool,
    /// Only runs older than this one: where the page before ended.
    pub before: Option<Uuid>,
    pub limit: i64,
}

/// The page is cut first and its causes are looked up after, so that a list never weighs every live run. The `limit 1`
/// says what is true anyway and keeps the planner from computing the causes of all runs to join them.
const PAGE_WITH_CAUSES: &str = "\
    select page.id, page.kind, page.version, page.org_id, page.project_id, page.correlation_id, page.trace_id, \
           page.target, page.parent_id, page.parent_step, page.retry_of, page.state, page.unwinding, page.pivoted, \
           (page.wake_at is not null or page.queued_job is not null) as wakes, \
           page.request, page.error, page.epoch, coalesce(last.seq + 1, 0) as seq, page.created_at, page.started_at, \
           greatest(page.updated_at, last.at) as updated_at, \
           page.finished_at, driver.name as worker, why.code, why.detail, why.next_action, why.next_at \
    from (select * from engine.run where ";
const CAUSES: &str = ") page \
    left join engine.incarnation driver on driver.id = page.owner \
    left join lateral (select seq, at from engine.journal where run_id = page.id order by seq desc limit 1) last on true \
    left join lateral (select * from engine.run_cause where run_id = page.id limit 1) why on true \
    order by page.id desc";

/// Runs that match, newest first.
pub async fn runs(conn: &mut PgConnection, filter: &RunFilter) -> sqlx::Result<Vec<RunView>> {
    let mut query = QueryBuilder::<Postgres>::new(PAGE_WITH_CAUSES);
    narrow(&mut query, filter);
    query.push(" order by id desc limit ").push_bind(filter.limit).push(CAUSES);
    query.build_query_as::<RunView>().fetch_all(conn).await
}

fn narrow(query: &mut QueryBuilder<Postgres>, filter: &RunFilter) {
    query.push("true");
    if let Some(ids) = &filter.ids {
        query.push(" and id = any(").push_bind(ids.clone()).push(")");
    }
    if let Some(project) = filter.project {
        query.push(" and project_id = ").push_bind(project);
    }
    if let Some(kind) = &filter.kind {
        query.push(" and kind = ").push_bind(kind.clone());
    }
    if let Some(target) = &filter.target {
        query.push(" and target = ").push_bind(target.clone());
    }
    if let Some(correlation_id) = &filter.correlation_id {
        query.push(" and correlation_id = ").push_bind(correlation_id.clone());
    }
    if let Some(since) = filter.since {
        query.push(" and created_at >= ").push_bind(since);
    }
    if let Some(before) = filter.before {
        query.push(" and id < ").push_bind(before);
    }
    if let Some(text) = &filter.error {
        query.push(" and position(lower(").push_bind(text.clone());
        query.push(") in lower(concat(error::text, ' ', cause_detail::text))) > 0");
    }
    if filter.latest {
        query.push(" and not exists (select from engine.run again where again.retry_of = run.id)");
        query.push(
            " and not exists (select from engine.run later where later.target = run.target and later.id > run.id)",
        );
    }
    narrow_by_state(query, filter);
}

/// The states are spelled out, not bound, because the partial indexes on live and troubled runs are only considered
/// when the planner can see which states are asked for. Causes are found first, as an array, in one pass over the
/// live runs.
fn narrow_by_state(query: &mut QueryBuilder<Postgres>, filter: &RunFilter) {
    if !filter.states.is_empty() {
        let words: Vec<String> = filter.states.iter().map(|state| format!("'{state}'")).collect();
        query.push(format!(" and state in ({})", words.join(", ")));
        if !filter.states.iter().any(|state| state.is_terminal()) {
            query.push(" and finished_at is null");
        }
    }
    if let Some(cause) = filter.cause {
        query.push(
            " and finished_at is null and id = any(array(select run_id from engine.run_cause where code = ",
        );
        query.push_bind(cause.as_str()).push("))");
    }
    if filter.stuck {
        query.push(
            " and finished_at is null and id = any(array(select run_id from engine.run_cause where stuck))",
        );
    }
}

impl FromRow<'_, PgRow> for RunView {
    fn from_row(row: &PgRow) -> sqlx::Result<RunView> {
        let state = word(row.try_get("state")?)?;
        let unwinding = row.try_get("unwinding")?;
        Ok(RunView {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            version: row.try_get("version")?,
            org_id: row.try_get("org_id")?,
            project_id: row.try_get("project_id")?,
            correlation_id: row.try_get("correlation_id")?,
            trace_id: row.try_get("trace_id")?,
            target: row.try_get("target")?,
            parent_id: row.try_get("parent_id")?,
            parent_step: row.try_get("parent_step")?,
            retry_of: row.try_get("retry_of")?,
            state,
            unwinding,
            pivoted: row.try_get("pivoted")?,
            wakes: row.try_get("wakes")?,
            request: outstanding(row.try_get("request")?, state, unwinding),
            error: row.try_get("error")?,
            epoch: row.try_get("epoch")?,
            seq: row.try_get("seq")?,
            worker: row.try_get("worker")?,
            stuck_cause: stuck_cause(row)?,
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            updated_at: row.try_get("updated_at")?,
            finished_at: row.try_get("finished_at")?,
        })
    }
}

fn stuck_cause(row: &PgRow) -> sqlx::Result<Option<StuckCause>> {
    let Some(code) = row.try_get::<Option<&str>, _>("code")? else { return Ok(None) };
    Ok(Some(StuckCause {
        code: word(code)?,
        detail: row.try_get::<Value, _>("detail")?,
        next_action: row.try_get("next_action")?,
        next_at: row.try_get("next_at")?,
    }))
}
