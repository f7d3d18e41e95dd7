//! The processes that drive runs and what they are needed for, for `doctor`.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::registry::Kind;

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

/// A schedule whose runs nobody could drive.
#[derive(Debug, Clone)]
pub struct StrandedSchedule {
    pub name: String,
    pub kind: String,
    pub version: i32,
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

/// Schedules that fire, of workflows that neither these nor any living process has.
pub async fn stranded_schedules(
    conn: &mut PgConnection,
    known: &[Kind],
) -> sqlx::Result<Vec<StrandedSchedule>> {
    let (kinds, versions): (Vec<String>, Vec<i32>) =
        known.iter().map(|kind| (kind.name.to_owned(), kind.version)).unzip();
    sqlx::query_as!(
        StrandedSchedule,
        "select s.name, s.kind, s.version from engine.schedule s
         where not s.paused and not exists (select from engine.living_and_able(s.kind, s.version))
           and not exists (select from unnest($1::text[], $2::int[]) as known (kind, version)
                           where known.kind = s.kind and known.version = s.version)
         order by s.name",
        &kinds,
        &versions
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
