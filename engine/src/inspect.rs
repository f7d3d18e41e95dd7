//! Reads over the engine's tables, for the API, the metrics and `doctor`. Nothing here changes a run.
//!
//! Every reader takes the caller's connection. Why a run does not advance comes from one place, the view
//! `engine.run_cause`; no reader works that out again.

mod counts;
mod detail;
mod lock;
mod processes;
mod pulse;
mod runs;
mod trace;

use chrono::{DateTime, Utc};
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{Deserialize, IntoDeserializer};
use serde_json::Value;
use uuid::Uuid;

use crate::state::{Cause, RunState};

pub use counts::{LiveCount, QueueCount, counts, queue};
pub use detail::{AttemptView, LateSignal, RunDetail, StepView, run};
pub use lock::lock;
pub use processes::{
    NeededKind, Process, StrandedSchedule, needed_kinds, processes, queue_is_quiet, stranded_schedules,
};
pub use pulse::{Pulse, pulse};
pub use runs::{RunFilter, runs};
pub use trace::{TraceFilter, Traced, traced_runs, traced_steps};

/// A run as lists show it: everything but its input, output and steps.
#[derive(Debug, Clone)]
pub struct RunView {
    pub id: Uuid,
    pub kind: String,
    pub version: i32,
    pub org_id: Option<Uuid>,
    pub project_id: Uuid,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub target: Option<String>,
    pub parent_id: Option<Uuid>,
    pub parent_step: Option<String>,
    pub retry_of: Option<Uuid>,
    pub state: RunState,
    pub unwinding: bool,
    pub pivoted: bool,
    /// It has a time or a job: one that is paused is tried again by itself all the same.
    pub wakes: bool,
    /// What an operator asked for and the driver has not obeyed yet.
    pub request: Option<String>,
    pub error: Option<Value>,
    pub epoch: i64,
    pub seq: i32,
    /// The name of the process that drives it.
    pub worker: Option<String>,
    pub stuck_cause: Option<StuckCause>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Why a run does not advance, with the evidence, what to do about it, and when the engine acts next by itself.
#[derive(Debug, Clone)]
pub struct StuckCause {
    pub code: Cause,
    pub detail: Value,
    pub next_action: String,
    pub next_at: Option<DateTime<Utc>>,
}

/// A column that holds a word of one of the engine's closed lists.
fn word<'a, T: Deserialize<'a>>(text: &'a str) -> sqlx::Result<T> {
    let spelled: StrDeserializer<'a, WordError> = text.into_deserializer();
    T::deserialize(spelled).map_err(|unknown| sqlx::Error::Decode(Box::new(unknown)))
}

/// A request stays on the row after it was obeyed; it matters to operators only until then. A run at rest has obeyed.
fn outstanding(request: Option<String>, state: RunState, unwinding: bool) -> Option<String> {
    let obeyed = |asked: &String| state.is_settled() || (asked == "cancel" && unwinding);
    request.filter(|asked| !obeyed(asked))
}
