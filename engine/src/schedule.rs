//! Schedules. `next_at` in the row against the database's clock decides; every replica wakes, one fires, because each
//! nominal tick is a row of its own. Cron is in UTC.

mod declare;
mod fire;

pub(crate) use fire::fire_due;

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::engine::{Engine, RunHandle};
use crate::operate::{Asker, OperateError};
use crate::payload::PayloadError;
use crate::start::{NewRun, StartError};

/// What happens to ticks that passed while nobody was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Missed {
    Skip,
    One,
    All,
}

/// What happens when the last run has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum Overlap {
    Skip,
    Queue,
}

/// A schedule as the program declares it; operators may pause it, its times come from here.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub name: &'static str,
    /// Six fields, seconds first: `0 */5 * * * *` is every five minutes.
    pub cron: &'static str,
    pub missed: Missed,
    pub overlap: Overlap,
}

#[derive(Debug, Clone)]
pub struct ScheduleView {
    pub name: String,
    pub kind: String,
    pub version: i32,
    pub cron: String,
    pub missed: Missed,
    pub overlap: Overlap,
    pub paused: bool,
    pub next_at: DateTime<Utc>,
    pub last_at: Option<DateTime<Utc>>,
    pub last_run_id: Option<Uuid>,
    pub last_run_state: Option<String>,
    /// How its last run that has ended, ended.
    pub result: Option<ScheduleResult>,
}

#[derive(Debug, Clone)]
pub struct ScheduleResult {
    pub run_id: Uuid,
    pub state: String,
    pub finished_at: DateTime<Utc>,
    pub output: Option<Value>,
    pub error: Option<Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("{0:?} is not a cron expression: {1}")]
    Cron(String, String),
    #[error("the input of {0} {1}")]
    Input(&'static str, PayloadError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("the database does not keep up; the tick waits")]
    Pressure,
}

impl Engine {
    pub async fn schedules(&self, conn: &mut PgConnection) -> sqlx::Result<Vec<ScheduleView>> {
        let rows = sqlx::query!(
            r#"select s.name, s.kind, s.version, s.cron, s.missed as "missed: Missed",
                      s.overlap as "overlap: Overlap", s.paused, s.next_at, s.last_at, s.last_run_id,
                      r.state as "last_run_state?", ended.id as "ended_id?", ended.state as "ended_state?",
                      ended.finished_at as "ended_at?", ended.output as "output?", ended.error as "error?"
               from engine.schedule s left join engine.run r on r.id = s.last_run_id
               left join lateral (
                   select e.id, e.state, e.finished_at, e.output, e.error
                   from engine.tick t join engine.run e on e.id = t.run_id
                   where t.schedule = s.name and e.finished_at is not null order by t.nominal desc limit 1) ended on true
               order by s.name"#
        )
        .fetch_all(conn)
        .await?;
        let views = rows.into_iter().map(|row| {
            let ended = row.ended_id.zip(row.ended_state).zip(row.ended_at);
            ScheduleView {
                name: row.name,
                kind: row.kind,
                version: row.version,
                cron: row.cron,
                missed: row.missed,
                overlap: row.overlap,
                paused: row.paused,
                next_at: row.next_at,
                last_at: row.last_at,
                last_run_id: row.last_run_id,
                last_run_state: row.last_run_state,
                result: ended.map(|((run_id, state), finished_at)| ScheduleResult {
                    run_id,
                    state,
                    finished_at,
                    output: row.output,
                    error: row.error,
                }),
            }
        });
        Ok(views.collect())
    }

    /// Held still until the transaction ends, so that what was compared with it stays true.
    pub async fn hold_schedule(
        &self,
        conn: &mut PgConnection,
        name: &str,
    ) -> Result<ScheduleView, OperateError> {
        sqlx::query!("select name from engine.schedule where name = $1 for update", name)
            .fetch_optional(&mut *conn)
            .await?
            .ok_or(OperateError::NotFound)?;
        self.schedules(conn).await?.into_iter().find(|s| s.name == name).ok_or(OperateError::NotFound)
    }

    /// Fires once, now, whatever the cron says.
    pub async fn run_schedule(
        &self,
        conn: &mut PgConnection,
        name: &str,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let due = load(conn, name).await?.ok_or(OperateError::NotFound)?;
        let id = start(self, conn, &due, due.now, "by_hand", &by.correlation_id).await?;
        record(conn, name, id, "run", by).await?;
        self.handle(conn, id).await
    }

    pub async fn pause_schedule(
        &self,
        conn: &mut PgConnection,
        name: &str,
        by: &Asker,
    ) -> Result<ScheduleView, OperateError> {
        self.set_paused(conn, name, true, by).await
    }

    pub async fn resume_schedule(
        &self,
        conn: &mut PgConnection,
        name: &str,
        by: &Asker,
    ) -> Result<ScheduleView, OperateError> {
        self.set_paused(conn, name, false, by).await
    }

    async fn set_paused(
        &self,
        conn: &mut PgConnection,
        name: &str,
        paused: bool,
        by: &Asker,
    ) -> Result<ScheduleView, OperateError> {
        let set = sqlx::query!("update engine.schedule set paused = $2 where name = $1", name, paused)
            .execute(&mut *conn)
            .await?;
        if set.rows_affected() == 0 {
            return Err(OperateError::NotFound);
        }
        record(conn, name, Uuid::nil(), if paused { "pause" } else { "resume" }, by).await?;
        self.schedules(conn).await?.into_iter().find(|s| s.name == name).ok_or(OperateError::NotFound)
    }
}

struct Due {
    name: String,
    kind: String,
    version: i32,
    cron: String,
    input: String,
    missed: Missed,
    overlap: Overlap,
    next_at: DateTime<Utc>,
    waiting_tick: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

async fn load(conn: &mut PgConnection, name: &str) -> sqlx::Result<Option<Due>> {
    sqlx::query_as!(
        Due,
        r#"select name, kind, version, cron, input::text as "input!", missed as "missed: Missed",
                  overlap as "overlap: Overlap", next_at, waiting_tick,
                  engine.now() as "now!"
           from engine.schedule where name = $1 for update"#,
        name
    )
    .fetch_optional(conn)
    .await
}

async fn start(
    engine: &Engine,
    conn: &mut PgConnection,
    due: &Due,
    nominal: DateTime<Utc>,
    outcome: &str,
    correlation_id: &str,
) -> Result<Uuid, StartError> {
    let new = NewRun {
        kind: due.kind.clone(),
        version: due.version,
        input: due.input.clone(),
        project_id: Uuid::nil(),
        correlation_id: correlation_id.to_owned(),
        start_key: Some(format!("schedule/{}/{}", due.name, nominal.to_rfc3339())),
        ..NewRun::default()
    };
    let (id, _, _) = engine.start_new(conn, &new, false, &mut None).await?;
    tick(conn, due, nominal, Some(id), outcome).await?;
    sqlx::query!(
        "update engine.schedule set last_at = $2, last_run_id = $3 where name = $1",
        due.name,
        nominal,
        id
    )
    .execute(conn)
    .await?;
    Ok(id)
}

async fn tick(
    conn: &mut PgConnection,
    due: &Due,
    nominal: DateTime<Utc>,
    run: Option<Uuid>,
    outcome: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into engine.tick (schedule, nominal, run_id, outcome) values ($1, $2, $3, $4) on conflict do nothing",
        due.name,
        nominal,
        run,
        outcome
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Runs by hand stand among the others, and may have begun and ended while one before them goes on.
async fn is_live(conn: &mut PgConnection, due: &Due) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
               select from (select last_run_id as id from engine.schedule where name = $1
                            union (select run_id from engine.tick where schedule = $1 and run_id is not null
                                   order by nominal desc limit 100)) latest
               join engine.run r on r.id = latest.id where r.finished_at is null) as "live!""#,
        due.name
    )
    .fetch_one(conn)
    .await
}

async fn record(conn: &mut PgConnection, name: &str, run: Uuid, act: &str, by: &Asker) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into engine.act (id, run_id, schedule, act, actor, reason, correlation_id)
         values ($1, nullif($2, '00000000-0000-0000-0000-000000000000'::uuid), $3, $4, $5, $6, $7)",
        Uuid::now_v7(),
        run,
        name,
        act,
        by.actor,
        by.reason,
        by.correlation_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn parse(cron: &str) -> Result<cron::Schedule, ScheduleError> {
    cron::Schedule::from_str(cron).map_err(|e| ScheduleError::Cron(cron.to_owned(), e.to_string()))
}

fn next_after(cron: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, ScheduleError> {
    Ok(parse(cron)?.after(&now).next().unwrap_or(DateTime::<Utc>::MAX_UTC))
}
