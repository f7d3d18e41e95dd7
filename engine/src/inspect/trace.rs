//! What runs and their steps did under one correlation id, in order of time.
//!
//! Callers choose correlation ids, so there is no end to what may carry one. A page is cut after the place where the one before
//! ended, and only then limited, so whoever goes on from page to page is told of every run and every step.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

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
           from engine.run
           where correlation_id = $1 and ($2 or org_id = any($3) or project_id = any($4))
             and (created_at > $5 or (created_at = $5 and id::text > $6))
           order by created_at, id::text limit $7"#,
        filter.correlation_id,
        filter.everything,
        filter.orgs,
        filter.projects,
        filter.after.0,
        filter.after.1,
        filter.limit
    )
    .fetch_all(conn)
    .await
}

/// The steps of a page that tells runs too. It ends at the last run for which it has room, and no step begins before its run
/// does, so later runs are not looked at; nor are those whose journal ended before the page begins.
pub async fn traced_steps(conn: &mut PgConnection, filter: &TraceFilter<'_>) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select started_at as "at!", id as "id!", run_id as "run_id!", name as "name!", state as "state!", code, target,
                  org_id, project_id as "project_id!", finished_at
           from (select step.started_at, concat_ws('/', run.id, step.name, nullif(step.key, '')) as id, run.id as run_id,
                        step.name, step.state, step.error ->> 'code' as code, run.target, run.org_id, run.project_id,
                        step.finished_at
                 from (select * from engine.run r
                       where correlation_id = $1 and ($2 or org_id = any($3) or project_id = any($4))
                         and created_at <= coalesce(
                             (select max(created_at)
                              from (select created_at from engine.run
                                    where correlation_id = $1 and ($2 or org_id = any($3) or project_id = any($4))
                                      and created_at > $5 order by created_at limit $7) page
                              having count(*) = $7), 'infinity')
                         and (finished_at is null or finished_at >= $5)
                         and (select at from engine.journal where run_id = r.id order by seq desc limit 1) >= $5) run
                 cross join lateral engine.steps_of(run.id) step) steps
           where started_at > $5 or (started_at = $5 and id > $6)
           order by started_at, id limit $7"#,
        filter.correlation_id,
        filter.everything,
        filter.orgs,
        filter.projects,
        filter.after.0,
        filter.after.1,
        filter.limit
    )
    .fetch_all(conn)
    .await
}
