//! What runs and their steps did under one correlation id, in order of time.
//!
//! Callers choose correlation ids, so there is no end to what may carry one: of an id the first [`RUNS`] runs are told.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// The list of runs shows those beyond.
const RUNS: i64 = 200;

/// Whose runs to tell, and from where on.
#[derive(Debug, Clone, Copy)]
pub struct TraceFilter<'a> {
    pub correlation_id: &'a str,
    /// Of every project; else only of these organizations and projects.
    pub everything: bool,
    pub orgs: &'a [Uuid],
    pub projects: &'a [Uuid],
    /// Only what comes after this time; and of this very time, what has a greater id than this, if one is given.
    pub after: (DateTime<Utc>, Option<&'a str>),
    pub limit: i64,
}

/// A run, or one of its steps.
#[derive(Debug, Clone)]
pub struct Traced {
    pub at: DateTime<Utc>,
    pub id: String,
    pub run_id: Uuid,
    pub name: String,
    pub state: String,
    pub code: Option<String>,
    pub target: Option<String>,
    pub org_id: Option<Uuid>,
    pub project_id: Uuid,
    pub finished_at: Option<DateTime<Utc>>,
}

pub async fn traced_runs(conn: &mut PgConnection, filter: &TraceFilter<'_>) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select created_at as at, id::text as "id!", id as run_id, kind as name, state, error ->> 'code' as code, target,
                  org_id, project_id, finished_at
           from (select * from engine.run where correlation_id = $1
                     and ($2 or org_id = any($3) or project_id = any($4)) order by created_at, id limit $5) run
           where created_at > $6 or (created_at = $6 and id::text > $7)
           order by created_at, id::text limit $8"#,
        filter.correlation_id,
        filter.everything,
        filter.orgs,
        filter.projects,
        RUNS,
        filter.after.0,
        filter.after.1,
        filter.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn traced_steps(conn: &mut PgConnection, filter: &TraceFilter<'_>) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select started_at as "at!", id as "id!", run_id as "run_id!", name as "name!", state as "state!", code, target,
                  org_id, project_id as "project_id!", finished_at
           from (select step.started_at, concat_ws('/', run.id, step.name, nullif(step.key, '')) as id, run.id as run_id,
                        step.name, step.state, step.error ->> 'code' as code, run.target, run.org_id, run.project_id,
                        step.finished_at
                 from (select * from engine.run where correlation_id = $1
                           and ($2 or org_id = any($3) or project_id = any($4)) order by created_at, id limit $5) run
                 cross join lateral engine.steps_of(run.id) step
                 where run.finished_at is null or run.finished_at >= $6) steps
           where started_at > $6 or (started_at = $6 and id > $7)
           order by started_at, id limit $8"#,
        filter.correlation_id,
        filter.everything,
        filter.orgs,
        filter.projects,
        RUNS,
        filter.after.0,
        filter.after.1,
        filter.limit
    )
    .fetch_all(conn)
    .await
}
