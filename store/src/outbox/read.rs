//! Reads events in their order. Only those that have a number are told, so whoever resumes after a number misses nothing.

use chrono::{DateTime, Utc};
use domain::event::CloudEvent;
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

use super::{Row, shown};

/// Which events of a project to tell; every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub project_id: Uuid,
    /// By their names: who follows may wait for one that this release does not know.
    pub types: Vec<String>,
    pub subject: Option<String>,
    pub correlation_id: Option<String>,
    pub since: Option<DateTime<Utc>>,
    /// Only events with a higher number; newest first, with a lower one, where it is not 0.
    pub after: i64,
    pub limit: i64,
    pub newest_first: bool,
}

/// In their order, or the other way round.
pub async fn told(conn: &mut PgConnection, filter: &Filter) -> sqlx::Result<Vec<CloudEvent>> {
    let mut query = QueryBuilder::new(
        "select id, project_id, org_id, seq, type as kind, subject, data, correlation_id, traceparent, at
         from outbox where project_id = ",
    );
    query.push_bind(filter.project_id);
    // What has no number yet is told to nobody.
    match (filter.newest_first, filter.after) {
        (true, 0) => query.push(" and seq is not null"),
        (true, before) => query.push(" and seq < ").push_bind(before),
        (false, after) => query.push(" and seq > ").push_bind(after),
    };
    if !filter.types.is_empty() {
        query.push(" and type = any(").push_bind(&filter.types).push(")");
    }
    if let Some(subject) = &filter.subject {
        query.push(" and subject = ").push_bind(subject);
    }
    if let Some(correlation_id) = &filter.correlation_id {
        query.push(" and correlation_id = ").push_bind(correlation_id);
    }
    if let Some(since) = filter.since {
        query.push(" and at >= ").push_bind(since);
    }
    let order = if filter.newest_first { " order by seq desc limit " } else { " order by seq limit " };
    query.push(order).push_bind(filter.limit);
    let rows: Vec<Row> = query.build_query_as().fetch_all(conn).await?;
    Ok(rows.into_iter().map(shown).collect())
}

/// Where a project's events begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of the newest event; 0 before the first.
    pub last: i64,
    /// Events up to this number are no longer kept.
    pub forgotten: i64,
}

pub async fn extent(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Extent> {
    let found = sqlx::query_as!(
        Extent,
        "select last_seq as last, forgotten from event_counters where project_id = $1",
        project
    )
    .fetch_optional(conn)
    .await?;
    Ok(found.unwrap_or_default())
}

/// How far each of these projects is numbered, as far as it has events.
pub async fn progress(conn: &mut PgConnection, projects: &[Uuid]) -> sqlx::Result<Vec<(Uuid, i64)>> {
    let rows =
        sqlx::query!("select project_id, last_seq from event_counters where project_id = any($1)", projects)
            .fetch_all(conn)
            .await?;
    Ok(rows.into_iter().map(|row| (row.project_id, row.last_seq)).collect())
}
