//! How many runs are alive, by workflow, state and cause, and how the queue stands. Finished runs are not counted: there is
//! no end to them.

use sqlx::PgConnection;

use super::word;
use crate::state::{Cause, RunState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCount {
    pub kind: String,
    pub state: RunState,
    /// `None` for the runs that advance.
    pub cause: Option<Cause>,
    /// Whether the page of stuck runs shows them.
    pub stuck: bool,
    pub runs: i64,
}

/// Costs one pass over the live runs; callers keep the answer for some seconds.
pub async fn counts(conn: &mut PgConnection) -> sqlx::Result<Vec<LiveCount>> {
    let rows = sqlx::query!(
        r#"select run.kind, run.state, why.code as "code?", coalesce(why.stuck, false) as "stuck!", count(*) as "runs!"
           from engine.run left join engine.run_cause why on why.run_id = run.id
           where run.finished_at is null group by run.kind, run.state, why.code, why.stuck"#
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LiveCount {
                kind: row.kind,
                state: word(&row.state)?,
                cause: row.code.as_deref().map(word).transpose()?,
                stuck: row.stuck,
                runs: row.runs,
            })
        })
        .collect()
}

/// How the queue stands. Ages are 0 where nothing waits.
#[derive(Debug, Clone, Default)]
pub struct QueueCount {
    /// Drives that were admitted and that nobody has taken.
    pub admitted: i64,
    pub oldest_admitted_seconds: f64,
    /// Runs whose time has come and that are not admitted: their project or all slots are full.
    pub due: i64,
    pub oldest_due_seconds: f64,
    /// Slots of all living processes.
    pub slots: i64,
    pub processes: i64,
}

pub async fn queue(conn: &mut PgConnection) -> sqlx::Result<QueueCount> {
    sqlx::query_as!(
        QueueCount,
        r#"with clock as materialized (select engine.now() as now)
           select admitted.runs as "admitted!", admitted.age as "oldest_admitted_seconds!", due.runs as "due!",
                  due.age as "oldest_due_seconds!", living.slots as "slots!", living.processes as "processes!"
           from (select count(*) as runs, coalesce(extract(epoch from max(now - queued_at)), 0)::float8 as age
                 from engine.run, clock where queued_job is not null and owner is null) admitted,
                (select count(*) as runs, coalesce(extract(epoch from max(now - wake_at)), 0)::float8 as age
                 from engine.run, clock where wake_at <= (select now from clock) and queued_job is null
                   and state not in ('paused', 'stuck')) due,
                (select coalesce(sum(slots), 0) as slots, count(*) as processes
                 from engine.incarnation where died_at is null and expires_at > clock_timestamp()) living"#
    )
    .fetch_one(conn)
    .await
}
