//! A workflow run as operators see it: what it is doing, every step with its attempts, and why it does not advance.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// Where a run is. `succeeded`, `failed`, `compensated` and `cancelled` never change again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    Waiting,
    Paused,
    Compensating,
    Succeeded,
    Failed,
    Compensated,
    Cancelled,
    Stuck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Pending,
    Running,
    Waiting,
    Succeeded,
    Failed,
    /// The outcome is unknown: the worker was lost between the effect and its record.
    Ambiguous,
    Skipped,
    Compensating,
    Compensated,
}

/// What a step does: an effect outside, an effect in the platform's own database, a timer, a signal, a child run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    Activity,
    Transact,
    Sleep,
    Wait,
    Child,
}

/// The closed list of reasons for which a run does not advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuckCode {
    LeaseLost,
    Backoff,
    ProjectLimit,
    WaitingSignal,
    WaitingTimer,
    PausedByOperator,
    RetriesExhausted,
    UndoFailed,
    UnknownVersion,
    WaitingForRun,
    DatabasePressure,
    CrashLoop,
    Nondeterministic,
}

/// Why a run does not advance, and what happens next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StuckCause {
    pub code: StuckCode,
    /// The evidence; its fields depend on the code.
    #[schema(value_type = Object)]
    pub detail: Value,
    /// What a person should do, or that nothing need be done.
    pub next_action: String,
    /// When the platform itself acts next, where it will.
    pub next_at: Option<DateTime<Utc>>,
}

/// How every asynchronous answer names the run that does its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowHandle {
    pub id: Uuid,
    pub kind: String,
    pub status: RunStatus,
    pub correlation_id: String,
    /// Where to read the run.
    pub href: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowRun {
    pub id: Uuid,
    pub kind: String,
    /// The definition this run was started with and keeps.
    pub version: i32,
    pub org_id: Option<Uuid>,
    /// The nil id stands for the platform itself.
    pub project_id: Uuid,
    pub status: RunStatus,
    /// What the run is about; at most one run holds a subject at a time.
    pub subject: Option<String>,
    /// What an operator asked for and the run has not obeyed yet: `pause` or `cancel`.
    pub requested: Option<String>,
    /// `null` while the run advances.
    pub stuck_cause: Option<StuckCause>,
    /// What stopped the run, once something did.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub parent_id: Option<Uuid>,
    pub parent_step: Option<String>,
    /// The finished run that this one tries again.
    pub retry_of: Option<Uuid>,
    /// The process that drives the run now.
    pub worker: Option<String>,
    /// Rises with every step the run takes.
    pub seq: i32,
    /// What an operator may ask of the run in its present state.
    pub allowed_actions: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// The run with its steps in order, those planned but not reached at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowRunDetail {
    #[serde(flatten)]
    pub run: WorkflowRun,
    /// Redacted, as are the steps' inputs and outputs.
    pub input: Value,
    pub output: Option<Value>,
    /// The last 500 that the run reached, and those planned.
    pub steps: Vec<Step>,
    /// How many earlier steps are left out.
    #[serde(default)]
    pub steps_left_out: i64,
    /// What arrived when the run no longer waited for it: the last 100.
    #[serde(default)]
    pub late_signals: Vec<LateSignal>,
    /// How many there are.
    #[serde(default)]
    pub late_signals_total: i64,
}

/// An answer from outside that came after the run had given up waiting for it, or had ended. It changed nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LateSignal {
    /// The wait it was meant for.
    pub name: String,
    /// By which a repetition is known.
    pub key: String,
    /// Redacted.
    pub payload: Value,
    pub received_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    pub name: String,
    /// Tells apart steps of one name, such as one per member; empty for the others.
    pub key: String,
    pub kind: StepKind,
    pub state: StepState,
    /// Position in the run; `null` while the step is only planned.
    pub seq: Option<i32>,
    /// Whether the run takes this step back when it fails later.
    pub undoable: bool,
    /// Tries so far, forward and undoing.
    pub attempt: i32,
    pub undo_attempt: i32,
    pub input: Option<Value>,
    pub output: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
    pub worker: Option<String>,
    pub correlation_id: Option<String>,
    #[serde(default)]
    pub trace_id: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    pub deadline_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    /// How far the node is with what the step waits for; `null` where it waits for none, or for one that has not told.
    #[serde(default)]
    pub progress: Option<StepProgress>,
    /// Oldest first; days past the retention of history are absent.
    pub attempts: Vec<Attempt>,
}

/// What a node told last of a task that takes it long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepProgress {
    /// `pulling` while bytes come, else `working`.
    pub phase: String,
    pub bytes_done: u64,
    /// `null` until it is known. It rises while the parts of an image become known.
    pub bytes_total: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    Succeeded,
    Retry,
    Terminal,
    NeedsOperator,
    TimedOut,
    Lost,
    Cancelled,
    /// A repeated step looked before it acted and found the effect there already.
    FoundDone,
}

/// One try of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub attempt: i32,
    /// Whether this was a try to take the step back.
    pub undo: bool,
    pub outcome: AttemptOutcome,
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
    pub worker: Option<String>,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}
