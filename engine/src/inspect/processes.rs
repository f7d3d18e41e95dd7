//! The processes that drive runs and what they are needed for, for `doctor`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// A process that has not ended. It lives while it renews its lease.
#[derive(Debug, Clone)]
pub struct Process {
    pub name: String,
    pub slots: i32,
    pub started_at: DateTime<Utc>,
    pub living: bool,
}

/// A definition that unfinished runs still need.
#[derive(Debug, Clone)]
pub struct NeededKind {
    pub name: String,
    pub version: i32,
    pub runs: i64,
}

pub async fn processes(conn: &mut PgConnection) -> sqlx::Result<Vec<Process>> {
    sqlx::query_as!(
        Process,
        r#"select name, slots, started_at, expires_at > clock_timestamp() as "living!"
           from engine.incarnation where died_at is null order by started_at"#
    )
    .fetch_all(conn)
    .await
}

pub async fn needed_kinds(conn: &mut PgConnection) -> sqlx::Result<Vec<NeededKind>> {
    sqlx::query_as!(
        NeededKind,
        r#"select kind as name, version, count(*) as "runs!"
           from engine.run where finished_at is null group by kind, version order by kind, version"#
    )
    .fetch_all(conn)
    .await
}

/// Whether the queue's NOTIFY trigger is off, as a migration left it; on, it serialises every start.
pub async fn queue_is_quiet(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let loud = sqlx::query_scalar!(
        r#"select exists (select from pg_trigger where tgrelid = 'apalis.jobs'::regclass
                          and tgname = 'notify_workers' and tgenabled <> 'D') as "loud!""#
    )
    .fetch_one(conn)
    .await?;
    Ok(!loud)
}
