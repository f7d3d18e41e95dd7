//! One run with its journal and every try of its steps.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{RunFilter, RunView, runs, word};
use crate::state::{Op, StepState};

#[derive(Debug, Clone)]
pub struct RunDetail {
    pub run: RunView,
    pub input: Value,
    pub output: Option<Value>,
    /// In the order the run reached them, the last [`MOST_STEPS`]; steps that are only planned are not here.
    pub steps: Vec<StepView>,
    /// How many earlier ones are left out.
    pub steps_left_out: i64,
    /// Signals that came when nobody waited for them any more, the last [`MOST_LATE`], oldest first.
    pub late_signals: Vec<LateSignal>,
    /// How many there are.
    pub late_signals_total: i64,
}

#[derive(Debug, Clone)]
pub struct LateSignal {
    /// The wait it was meant for.
    pub name: String,
    /// By which a repetition is known.
    pub key: String,
    pub payload: Value,
    pub at: DateTime<Utc>,
}

/// As many steps, and as many tries of them, as one look at a run reads.
const MOST_STEPS: i64 = 500;
const MOST_TRIES: i64 = 2_000;
const MOST_LATE: i64 = 100;

#[derive(Debug, Clone)]
pub struct StepView {
    pub name: String,
    pub key: String,
    pub seq: i32,
    pub op: Op,
    pub state: StepState,
    pub undoable: bool,
    pub attempt: i32,
    pub undo_attempt: i32,
    pub input: Option<Value>,
    pub output: Option<Value>,
    pub error: Option<Value>,
    pub worker: Option<String>,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub started_at: DateTime<Utc>,
    pub deadline_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    /// Oldest first; those past the retention of history are gone.
    pub attempts: Vec<AttemptView>,
}

#[derive(Debug, Clone)]
pub struct AttemptView {
    pub attempt: i32,
    pub undo: bool,
    pub outcome: String,
    pub error: Option<Value>,
    pub worker: Option<String>,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}

/// The run with its steps and attempts. The three reads are one picture only inside one transaction with a
/// snapshot; outside, a step may be newer than its run by one checkpoint, which the next read shows.
pub async fn run(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<RunDetail>> {
    let only = RunFilter { ids: Some(vec![id]), limit: 1, ..RunFilter::default() };
    let Some(run) = runs(conn, &only).await?.pop() else { return Ok(None) };
    let payload =
        sqlx::query!("select input, output from engine.run where id = $1", id).fetch_one(&mut *conn).await?;
    let mut attempts = attempts(conn, &run).await?;
    let (mut steps, steps_left_out) = steps(conn, id).await?;
    for step in &mut steps {
        step.attempts = attempts.remove(&(step.name.clone(), step.key.clone())).unwrap_or_default();
    }
    let (late_signals, late_signals_total) = late_signals(conn, id).await?;
    let (input, output) = (payload.input, payload.output);
    Ok(Some(RunDetail { run, input, output, steps, steps_left_out, late_signals, late_signals_total }))
}

async fn steps(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<(Vec<StepView>, i64)> {
    let rows = sqlx::query!(
        r#"select step.name as "name!", step.key as "key!", step.seq as "seq!", step.op as "op!", step.state as "state!",
                  step.undoable as "undoable!", step.attempt as "attempt!", step.undo_attempt as "undo_attempt!",
                  step.input, step.output, step.error, step.correlation_id as "correlation_id!", step.trace_id,
                  step.started_at as "started_at!", step.deadline_at,
                  step.finished_at, worker.name as "worker?", count(*) over () as "all!"
           from engine.steps_of($1) step left join engine.incarnation worker on worker.id = step.worker
           order by step.seq desc, step.name desc, step.key desc limit $2"#,
        run,
        MOST_STEPS,
    )
    .fetch_all(conn)
    .await?;
    let left_out = rows.first().map_or(0, |row| row.all) - rows.len() as i64;
    let steps = rows
        .into_iter()
        .rev()
        .map(|row| {
            Ok(StepView {
                op: word(&row.op)?,
                state: word(&row.state)?,
                name: row.name,
                key: row.key,
                seq: row.seq,
                undoable: row.undoable,
                attempt: row.attempt,
                undo_attempt: row.undo_attempt,
                input: row.input,
                output: row.output,
                error: row.error,
                worker: row.worker,
                correlation_id: row.correlation_id,
                trace_id: row.trace_id,
                started_at: row.started_at,
                deadline_at: row.deadline_at,
                finished_at: row.finished_at,
                attempts: Vec::new(),
            })
        })
        .collect::<sqlx::Result<_>>()?;
    Ok((steps, left_out))
}

/// What a run that ended left untaken is late too, though nobody may have said so yet.
async fn late_signals(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<(Vec<LateSignal>, i64)> {
    let rows = sqlx::query!(
        r#"select s.name, s.dedupe_key, s.payload, s.created_at, count(*) over () as "all!"
           from engine.signal s join engine.run r on r.id = s.run_id
           where s.run_id = $1 and (s.state = 'late' or (s.state = 'kept' and r.finished_at is not null))
           order by s.created_at desc, s.dedupe_key desc limit $2"#,
        run,
        MOST_LATE
    )
    .fetch_all(conn)
    .await?;
    let total = rows.first().map_or(0, |row| row.all);
    let late = rows.into_iter().rev().map(|row| LateSignal {
        name: row.name,
        key: row.dedupe_key,
        payload: row.payload,
        at: row.created_at,
    });
    Ok((late.collect(), total))
}

type StepKey = (String, String);

/// No try is older than its run, so the lower bound spares the partitions of earlier days.
async fn attempts(
    conn: &mut PgConnection,
    run: &RunView,
) -> sqlx::Result<HashMap<StepKey, Vec<AttemptView>>> {
    let rows = sqlx::query!(
        r#"select try.name as "name!", try.key as "key!", try.attempt as "attempt!", try.undo as "undo!",
                  try.outcome as "outcome!", try.error, try.correlation_id as "correlation_id!", try.trace_id,
                  try.started_at as "started_at!", try.at as "at!", worker.name as "worker?"
           from engine.tries_of($1) try left join engine.incarnation worker on worker.id = try.worker
           where try.at >= $2
           order by try.at desc, try.undo desc, try.attempt desc limit $3"#,
        run.id,
        run.created_at,
        MOST_TRIES,
    )
    .fetch_all(conn)
    .await?;
    let mut by_step: HashMap<StepKey, Vec<AttemptView>> = HashMap::new();
    for row in rows.into_iter().rev() {
        by_step.entry((row.name, row.key)).or_default().push(AttemptView {
            attempt: row.attempt,
            undo: row.undo,
            outcome: row.outcome,
            error: row.error,
            worker: row.worker,
            correlation_id: row.correlation_id,
            trace_id: row.trace_id,
            started_at: row.started_at,
            finished_at: row.at,
        });
    }
    Ok(by_step)
}
