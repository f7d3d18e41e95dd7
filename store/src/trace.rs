//! What our own tables know of one correlation id, in order of time: the audit log, tasks of nodes, events, usage. Each
//! reader tells only what lies within the caller's reach for the key that guards it.

use chrono::{DateTime, Utc};
use domain::Reach;
use sqlx::PgConnection;
use uuid::Uuid;

/// From where on to tell what, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    pub correlation_id: &'a str,
    /// Only what comes after this time; and of this very time, what has a greater id than this, if one is given.
    pub after: (DateTime<Utc>, Option<&'a str>),
    pub limit: i64,
}

#[derive(Clone, Debug)]
pub struct Traced {
    pub at: DateTime<Utc>,
    pub id: String,
    pub name: String,
    pub status: Option<String>,
    pub code: Option<String>,
    pub subject: Option<String>,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub run_id: Option<Uuid>,
    pub actor_id: Option<Uuid>,
    pub finished_at: Option<DateTime<Utc>>,
    pub quantity: Option<i64>,
}

/// Entries of the audit log: those that a request wrote, which came from an address, or the others. A request stands where
/// it began, before all that it caused, although its entry is written last.
pub async fn audited(
    conn: &mut PgConnection,
    by_request: bool,
    reach: &Reach,
    window: Window<'_>,
) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select began as "at!", id::text as "id!", action as name, result as "status?", code, target as "subject?", org_id,
                  project_id, null::uuid as run_id, actor_id, at as "finished_at?", null::bigint as quantity
           from (select *, case when ip is null then at else coalesce(began_at, at) end as began
                 from audit where correlation_id = $1) entry
           where ($2 or org_id = any($3) or project_id = any($4)) and (ip is not null) = $5
             and (began > $6 or (began = $6 and id::text > $7))
           order by began, id::text limit $8"#,
        window.correlation_id,
        reach.everything,
        &reach.orgs,
        &reach.projects,
        by_request,
        window.after.0,
        window.after.1,
        window.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn node_tasks(
    conn: &mut PgConnection,
    reach: &Reach,
    window: Window<'_>,
) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select created_at as at, id::text as "id!", kind as name, status as "status?", result ->> 'code' as code,
                  'node:' || node_id as subject, org_id, project_id, run_id, null::uuid as actor_id, finished_at,
                  null::bigint as quantity
           from node_tasks
           where correlation_id = $1 and ($2 or org_id = any($3) or project_id = any($4))
             and (created_at > $5 or (created_at = $5 and id::text > $6))
           order by created_at, id::text limit $7"#,
        window.correlation_id,
        reach.everything,
        &reach.orgs,
        &reach.projects,
        window.after.0,
        window.after.1,
        window.limit
    )
    .fetch_all(conn)
    .await
}

/// Events of the platform itself belong to no project.
pub async fn events(conn: &mut PgConnection, reach: &Reach, window: Window<'_>) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"select at, id::text as "id!", type as name, null::text as status, null::text as code, subject as "subject?", org_id,
                  nullif(project_id, '00000000-0000-0000-0000-000000000000'::uuid) as project_id, null::uuid as run_id,
                  null::uuid as actor_id, null::timestamptz as finished_at, null::bigint as quantity
           from outbox
           where correlation_id = $1 and ($2 or org_id = any($3) or project_id = any($4))
             and (at > $5 or (at = $5 and id::text > $6))
           order by at, id::text limit $7"#,
        window.correlation_id,
        reach.everything,
        &reach.orgs,
        &reach.projects,
        window.after.0,
        window.after.1,
        window.limit
    )
    .fetch_all(conn)
    .await
}

/// What was used, unit by unit and hour by hour, at the time at which the first of it was recorded: an instance that runs for
/// a year tells of hours, not of every minute. Every hour tells something, so as many as are asked for are enough.
pub async fn usage(conn: &mut PgConnection, reach: &Reach, window: Window<'_>) -> sqlx::Result<Vec<Traced>> {
    sqlx::query_as!(
        Traced,
        r#"with recursive hours (start, number) as (
               select date_trunc('hour', min(recorded_at), 'UTC'), 1::bigint from usage_records
               where correlation_id = $1 and recorded_at >= date_trunc('hour', $5::timestamptz, 'UTC')
                 and ($2 or org_id = any($3) or project_id = any($4))
               union all
               select (select date_trunc('hour', min(r.recorded_at), 'UTC') from usage_records r
                       where r.correlation_id = $1 and r.recorded_at >= h.start + interval '1 hour'
                         and ($2 or r.org_id = any($3) or r.project_id = any($4))), h.number + 1
               from hours h where h.start is not null and h.number <= $7),
           summed as (
               select min(r.recorded_at) as at, min(r.id::text) as id, r.usage_unit, sum(r.quantity) as quantity,
                      coalesce('app_instance:' || r.app_instance_id, 'allocation:' || r.allocation_id) as subject,
                      r.org_id, r.project_id, max(r.recorded_at) as finished_at
               from hours h join usage_records r on r.correlation_id = $1 and r.recorded_at >= h.start
                   and r.recorded_at < h.start + interval '1 hour'
               where $2 or r.org_id = any($3) or r.project_id = any($4)
               group by h.start, r.usage_unit, r.app_instance_id, r.allocation_id, r.org_id, r.project_id)
           select at as "at!", id as "id!", usage_unit as name, null::text as status, null::text as code, subject,
                  org_id as "org_id?", project_id as "project_id?", null::uuid as run_id, null::uuid as actor_id,
                  finished_at as "finished_at?", least(quantity, 9223372036854775807)::bigint as "quantity?"
           from summed where at > $5 or (at = $5 and id > $6) order by at, id limit $7"#,
        window.correlation_id,
        reach.everything,
        &reach.orgs,
        &reach.projects,
        window.after.0,
        window.after.1,
        window.limit
    )
    .fetch_all(conn)
    .await
}
