//! The states of a run and of a step, and the closed list of reasons why a run does not advance.
//! The database holds the same words; nothing else spells them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
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

impl RunState {
    pub const ALL: [RunState; 10] = [
        RunState::Queued,
        RunState::Running,
        RunState::Waiting,
        RunState::Paused,
        RunState::Compensating,
        RunState::Succeeded,
        RunState::Failed,
        RunState::Compensated,
        RunState::Cancelled,
        RunState::Stuck,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Waiting => "waiting",
            RunState::Paused => "paused",
            RunState::Compensating => "compensating",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::Compensated => "compensated",
            RunState::Cancelled => "cancelled",
            RunState::Stuck => "stuck",
        }
    }

    /// A terminal run never changes again.
    pub const fn is_terminal(self) -> bool {
        matches!(self, RunState::Succeeded | RunState::Failed | RunState::Compensated | RunState::Cancelled)
    }

    /// Nothing further happens without an operator, or ever.
    pub const fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, RunState::Paused | RunState::Stuck)
    }
}

impl FromStr for RunState {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        RunState::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Pending,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Ambiguous,
    Skipped,
    Compensating,
    Compensated,
}

impl StepState {
    pub const ALL: [StepState; 9] = [
        StepState::Pending,
        StepState::Running,
        StepState::Waiting,
        StepState::Succeeded,
        StepState::Failed,
        StepState::Ambiguous,
        StepState::Skipped,
        StepState::Compensating,
        StepState::Compensated,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            StepState::Pending => "pending",
            StepState::Running => "running",
            StepState::Waiting => "waiting",
            StepState::Succeeded => "succeeded",
            StepState::Failed => "failed",
            StepState::Ambiguous => "ambiguous",
            StepState::Skipped => "skipped",
            StepState::Compensating => "compensating",
            StepState::Compensated => "compensated",
        }
    }
}

impl FromStr for StepState {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        StepState::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

impl fmt::Display for StepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What kind of operation a journal row records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Activity,
    Transact,
    Sleep,
    Wait,
    Child,
}

impl Op {
    pub const fn as_str(self) -> &'static str {
        match self {
            Op::Activity => "activity",
            Op::Transact => "transact",
            Op::Sleep => "sleep",
            Op::Wait => "wait",
            Op::Child => "child",
        }
    }
}

impl FromStr for Op {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Op::Activity, Op::Transact, Op::Sleep, Op::Wait, Op::Child]
            .into_iter()
            .find(|op| op.as_str() == word)
            .ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

/// Why a run does not advance. `lease_lost`, `project_limit` and `unknown_version` are mostly read off other columns
/// by the view `engine.run_cause`; the rest is written where the run comes to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
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

impl Cause {
    pub const ALL: [Cause; 13] = [
        Cause::LeaseLost,
        Cause::Backoff,
        Cause::ProjectLimit,
        Cause::WaitingSignal,
        Cause::WaitingTimer,
        Cause::PausedByOperator,
        Cause::RetriesExhausted,
        Cause::UndoFailed,
        Cause::UnknownVersion,
        Cause::WaitingForRun,
        Cause::DatabasePressure,
        Cause::CrashLoop,
        Cause::Nondeterministic,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::LeaseLost => "lease_lost",
            Cause::Backoff => "backoff",
            Cause::ProjectLimit => "project_limit",
            Cause::WaitingSignal => "waiting_signal",
            Cause::WaitingTimer => "waiting_timer",
            Cause::PausedByOperator => "paused_by_operator",
            Cause::RetriesExhausted => "retries_exhausted",
            Cause::UndoFailed => "undo_failed",
            Cause::UnknownVersion => "unknown_version",
            Cause::WaitingForRun => "waiting_for_run",
            Cause::DatabasePressure => "database_pressure",
            Cause::CrashLoop => "crash_loop",
            Cause::Nondeterministic => "nondeterministic",
        }
    }
}

impl FromStr for Cause {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Cause::ALL.into_iter().find(|c| c.as_str() == word).ok_or_else(|| UnknownWord(word.to_owned()))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("unknown word {0:?}")]
pub struct UnknownWord(pub String);
