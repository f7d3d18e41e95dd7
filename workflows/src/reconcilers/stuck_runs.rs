//! Every minute, runs that do not advance are looked for, and each is told once as `workflows.run_stuck` under its own
//! correlation id: at once where only a person can move it, and after a minute where it should have gone on by itself.
//! What an operator paused is not told: somebody knows.

use std::time::Duration;

use activities::Env;
use domain::EventType;
use domain::event::NewEvent;
use engine::inspect::{RunFilter, RunView, runs};
use engine::{
    Cause, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, RunState, Schedule, Workflow,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::outbox;
use store::stuck_runs::{self, Seen};
use uuid::Uuid;

/// A look that was missed is not made up for: the next one sees the same.
pub const MINUTELY: Schedule =
    Schedule { name: "stuck_runs", cron: "45 * * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// Less than the time between two looks, so that what was seen by the last one is told by this.
const PATIENCE: Duration = Duration::from_secs(50);
/// A run that is tried by itself every few minutes, and sticks each time, sticks once.
const GOES_ON_AFTER: Duration = Duration::from_secs(600);
/// As many as one transaction deals with, the newest first, and how many of them one look has. Where it stops, the next goes
/// on; the metrics count all of them.
const MOST: i64 = 500;
const PIECES: u32 = 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchRuns {}

/// What one look found.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Look {
    pub stuck: usize,
    pub told: usize,
    /// Whether it stopped before it saw everything.
    #[serde(default)]
    pub more: bool,
}

impl Workflow for WatchRuns {
    const NAME: &'static str = "platform.watch_runs";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::transact("tell_stuck")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let mut all = Look::default();
        for piece in 0..PIECES {
            let look: Look =
                run.transact_for("tell_stuck", piece, |conn| Box::pin(tell_stuck(conn, MOST))).await?;
            all = Look { stuck: all.stuck + look.stuck, told: all.told + look.told, more: look.more };
            if !look.more {
                break;
            }
        }
        run.output(&json!({ "stuck": all.stuck, "told": all.told, "more": all.more })).await
    }
}

/// The next that are stuck, from where the last look stopped.
pub async fn tell_stuck(conn: &mut PgConnection, most: i64) -> Result<Look, Fault> {
    let before = stuck_runs::stopped_at(conn).await?;
    let filter = RunFilter { stuck: true, before, limit: most, ..RunFilter::default() };
    let found = runs(conn, &filter).await?;
    let more = i64::try_from(found.len()).is_ok_and(|found| found >= most);
    stuck_runs::stop_at(conn, found.last().map(|run| run.id).filter(|_| more)).await?;
    let seen: Vec<Seen> = found.iter().filter_map(seen).collect();
    stuck_runs::forget(conn, GOES_ON_AFTER.as_secs_f64()).await?;
    let mut told = stuck_runs::look(conn, &seen, PATIENCE.as_secs_f64()).await?;
    told.sort_unstable();
    for run in found.iter().filter(|run| told.binary_search(&run.id).is_ok()) {
        outbox::insert(conn, &event(run)).await?;
    }
    Ok(Look { stuck: seen.len(), told: told.len(), more })
}

fn seen(run: &RunView) -> Option<Seen> {
    let cause = run.stuck_cause.as_ref()?.code;
    let settled = matches!(run.state, RunState::Paused | RunState::Stuck);
    (cause != Cause::PausedByOperator).then(|| Seen { run_id: run.id, cause: cause.as_str(), settled })
}

fn event(run: &RunView) -> NewEvent {
    let (kind, data) = (EventType::RunStuck, public(run));
    match run.org_id {
        Some(org) if run.project_id != Uuid::nil() => {
            NewEvent::of_project((org, run.project_id), kind, run.id, &data, run.correlation_id.as_str())
        }
        _ => NewEvent::of_platform(kind, run.id, &data, run.correlation_id.as_str()),
    }
}

/// As the run is shown, as far as it concerns somebody who must act.
fn public(run: &RunView) -> Value {
    let cause = run.stuck_cause.as_ref().map(|cause| {
        json!({
            "code": cause.code.as_str(), "detail": cause.detail, "next_action": cause.next_action,
            "next_at": cause.next_at,
        })
    });
    json!({
        "id": run.id, "kind": run.kind, "status": run.state.as_str(), "subject": run.target,
        "correlation_id": run.correlation_id, "error": run.error, "stuck_cause": cause,
    })
}
