//! Usage records: what was used, each report once. They only grow; whoever adds to a window opens it again for rating.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{UsageSource, Window};
use serde_json::Value;
use sqlx::{PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct UsageRecord {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_instance_id: Option<Uuid>,
    pub allocation_id: Option<Uuid>,
    pub app_slug: Option<String>,
    pub usage_source: String,
    pub usage_unit: String,
    pub quantity: i64,
    pub occurred_at: DateTime<Utc>,
    pub window_start: DateTime<Utc>,
    pub window_end: DateTime<Utc>,
    pub operating_mode: Option<String>,
    pub control_plane_scope: Option<String>,
    pub runtime_backend: Option<String>,
    pub control_plane_component: Option<String>,
    pub correlation_id: String,
    pub reference_id: Option<String>,
    pub metadata: Value,
    /// Whoever told it, and their own name for it.
    pub source: String,
    pub event_id: String,
    pub recorded_at: DateTime<Utc>,
    /// The kind of the allocation, which its price may depend on.
    pub sku: Option<String>,
    /// The price that its window was last rated by.
    pub price_id: Option<Uuid>,
    /// How much of the same thing its window was last rated for.
    pub rated_quantity: Option<i64>,
    /// Whether what it cost is in the ledger.
    pub rated: bool,
}

/// Whom usage is of, and in what circumstances.
#[derive(Clone, Debug)]
pub struct Attribution {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_instance_id: Option<Uuid>,
    pub allocation_id: Option<Uuid>,
    pub app_slug: Option<String>,
    pub operating_mode: Option<String>,
    pub control_plane_scope: Option<String>,
    pub runtime_backend: Option<String>,
    pub control_plane_component: Option<String>,
}

#[derive(Clone, Debug)]
pub struct NewRecord {
    pub id: Uuid,
    pub of: Attribution,
    pub usage_source: UsageSource,
    pub usage_unit: String,
    pub quantity: i64,
    pub occurred_at: DateTime<Utc>,
    pub window: Window,
    pub correlation_id: String,
    pub reference_id: Option<String>,
    pub metadata: Value,
    pub source: String,
    pub event_id: String,
}

/// Whoever looks what was told before it adds to it takes turns with the others of the project who do.
pub async fn take_turns(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<()> {
    let turn = format!("usage {project}");
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", turn).fetch_one(conn).await?;
    Ok(())
}

/// Of which instance the reports with these sources and names are, as far as they are there.
pub async fn named(
    conn: &mut PgConnection,
    project: Uuid,
    sources: &[String],
    event_ids: &[String],
) -> sqlx::Result<HashMap<(String, String), Option<Uuid>>> {
    let rows = sqlx::query!(
        "select r.source, r.event_id, r.app_instance_id from unnest($2::text[], $3::text[]) n(source, event_id)
         join usage_records r using (source, event_id) where r.project_id = $1",
        project,
        sources,
        event_ids
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| ((row.source, row.event_id), row.app_instance_id)).collect())
}

/// Adds those that were not told before and opens their windows. Answers the ids of what is new.
///
/// Last in its transaction where it can be: until that ends, nobody else adds to the same windows.
pub async fn add(conn: &mut PgConnection, new: &[NewRecord]) -> sqlx::Result<HashSet<Uuid>> {
    if new.is_empty() {
        return Ok(HashSet::new());
    }
    let ids = sqlx::query_scalar!(
        r#"with added as (
               insert into usage_records (id, org_id, project_id, app_instance_id, allocation_id, app_slug, operating_mode,
                   control_plane_scope, runtime_backend, control_plane_component, usage_source, usage_unit, quantity,
                   occurred_at, window_start, window_end, correlation_id, reference_id, metadata, source, event_id)
               select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[],
                   $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::timestamptz[],
                   $15::timestamptz[], $16::timestamptz[], $17::text[], $18::text[], $19::jsonb[], $20::text[], $21::text[])
               on conflict (project_id, source, event_id) do nothing
               returning id, project_id, window_start, window_end),
           opened as (
               insert into open_windows as o (project_id, window_start, window_end)
               select distinct project_id, window_start, window_end from added order by 1, 2, 3
               on conflict (project_id, window_start, window_end) do update set touched = o.touched + 1, retry_at = null)
           select id as "id!" from added"#,
        &all(new, |one| one.id),
        &all(new, |one| one.of.org_id),
        &all(new, |one| one.of.project_id),
        &all(new, |one| one.of.app_instance_id) as &[Option<Uuid>],
        &all(new, |one| one.of.allocation_id) as &[Option<Uuid>],
        &all(new, |one| one.of.app_slug.clone()) as &[Option<String>],
        &all(new, |one| one.of.operating_mode.clone()) as &[Option<String>],
        &all(new, |one| one.of.control_plane_scope.clone()) as &[Option<String>],
        &all(new, |one| one.of.runtime_backend.clone()) as &[Option<String>],
        &all(new, |one| one.of.control_plane_component.clone()) as &[Option<String>],
        &all(new, |one| one.usage_source.as_str().to_owned()),
        &all(new, |one| one.usage_unit.clone()),
        &all(new, |one| one.quantity),
        &all(new, |one| one.occurred_at),
        &all(new, |one| one.window.start),
        &all(new, |one| one.window.end),
        &all(new, |one| one.correlation_id.clone()),
        &all(new, |one| one.reference_id.clone()) as &[Option<String>],
        &all(new, |one| one.metadata.clone()),
        &all(new, |one| one.source.clone()),
        &all(new, |one| one.event_id.clone())
    )
    .fetch_all(conn)
    .await?;
    Ok(ids.into_iter().collect())
}

fn all<T>(new: &[NewRecord], field: impl Fn(&NewRecord) -> T) -> Vec<T> {
    new.iter().map(field).collect()
}

/// What is asked for; the times are those of windows.
#[derive(Clone, Debug)]
pub struct Filter {
    pub project: Uuid,
    pub instance: Option<Uuid>,
    pub source: Option<UsageSource>,
    pub from: Option<DateTime<Utc>>,
    pub to: Option<DateTime<Utc>>,
}

impl Filter {
    /// The conditions, for a table that has these columns.
    pub(crate) fn narrow(&self, query: &mut QueryBuilder<Postgres>, table: &str, moment: &str) {
        query.push(format_args!(" where {table}.project_id = ")).push_bind(self.project);
        if let Some(instance) = self.instance {
            query.push(format_args!(" and {table}.app_instance_id = ")).push_bind(instance);
        }
        if let Some(source) = self.source {
            query.push(format_args!(" and {table}.usage_source = ")).push_bind(source.as_str());
        }
        if let Some(from) = self.from {
            query.push(format_args!(" and {table}.{moment} >= ")).push_bind(from);
        }
        if let Some(to) = self.to {
            query.push(format_args!(" and {table}.{moment} < ")).push_bind(to);
        }
    }
}

/// A record has its id from the moment at which it is written, by the clock of whoever writes it. An event may be dated a few
/// minutes ahead and a window begins before what it holds, so nothing of a window is written earlier than this before it.
const AHEAD: TimeDelta = TimeDelta::hours(1);

/// No record of a window that begins at this moment or later has a lower id: what is older is passed over by key.
fn lowest_id(from: DateTime<Utc>) -> Uuid {
    let written = from.checked_sub_signed(AHEAD).unwrap_or(DateTime::UNIX_EPOCH).timestamp_millis();
    // The first 48 bits of a version 7 id are its time; one that does not fit is after all of them.
    let millis = u64::try_from(written).unwrap_or_default().min((1 << 48) - 1);
    Uuid::from_u128(u128::from(millis) << 80)
}

/// In the order in which they were told.
pub async fn list(conn: &mut PgConnection, filter: &Filter, slice: Slice) -> sqlx::Result<Vec<UsageRecord>> {
    let mut query = QueryBuilder::new(
        "select r.id, r.org_id, r.project_id, r.app_instance_id, r.allocation_id, r.app_slug, r.usage_source, r.usage_unit,
                r.quantity, r.occurred_at, r.window_start, r.window_end, r.operating_mode, r.control_plane_scope,
                r.runtime_backend, r.control_plane_component, r.correlation_id, r.reference_id, r.metadata, r.source,
                r.event_id, r.recorded_at, a.sku, u.price_id, u.quantity as rated_quantity,
                u.price_id is not null and o.project_id is null as rated
         from usage_records r
         left join allocations a on r.usage_source = 'allocation' and a.id = r.allocation_id
         left join usage_windows u on u.project_id = r.project_id and u.window_start = r.window_start
             and u.window_end = r.window_end and u.usage_source = r.usage_source and u.usage_unit = r.usage_unit
             and u.app_instance_id is not distinct from r.app_instance_id
             and u.allocation_id is not distinct from r.allocation_id
         left join open_windows o on o.project_id = r.project_id and o.window_start = r.window_start
             and o.window_end = r.window_end",
    );
    filter.narrow(&mut query, "r", "window_start");
    if let Some(from) = filter.from {
        query.push(" and r.id >= ").push_bind(lowest_id(from));
    }
    if let Some(after) = slice.after {
        query.push(" and r.id > ").push_bind(after);
    }
    query.push(" order by r.id limit ").push_bind(slice.limit);
    query.build_query_as().fetch_all(conn).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_when_its_window_begins_or_minutes_before_is_not_passed_over() {
        let id = Uuid::now_v7();
        let (seconds, _) = id.get_timestamp().unwrap().to_unix();
        let now = DateTime::from_timestamp(i64::try_from(seconds).unwrap(), 0).unwrap();
        for ahead in [-3600, 0, 300] {
            assert!(lowest_id(now + TimeDelta::seconds(ahead)) < id, "{ahead}");
        }
        assert!(lowest_id(now + TimeDelta::hours(2)) > id, "what is older is");
        assert_eq!(lowest_id(DateTime::<Utc>::MIN_UTC), Uuid::nil());
        assert!(lowest_id(DateTime::<Utc>::MAX_UTC) > id);
    }
}
