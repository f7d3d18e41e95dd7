//! Durable execution on Postgres: a workflow is a function whose steps are journaled by name, so that after a crash
//! it runs again from the top and every finished step is answered from the journal.
//!
//! The truth (run, step, attempt, owner, retry time, wait) is in our own tables, written in our own transactions.
//! apalis is the queue and the worker runtime: one job means "drive run X". This is the only crate that names it.

mod activity;
mod admission;
mod alone;
mod berth;
mod checkpoint;
mod claim;
mod clock;
mod committer;
mod core;
mod database;
mod drive;
mod engine;
mod event;
mod failpoint;
mod fault;
mod ferry;
mod held;
mod incarnation;
mod inherit;
pub mod inspect;
mod intake;
mod invariants;
mod journal;
mod operate;
mod patience;
mod payload;
mod pool;
mod reaper;
mod registry;
mod reins;
mod retention;
mod retry;
mod run;
mod schedule;
mod settings;
mod signal;
mod start;
mod state;
mod stats;
mod supersede;
mod tally;
mod tend;
pub mod testing;
pub mod trace;
mod unwind;
mod workers;

pub use activity::{Activity, Call, Observed};
pub use engine::{Engine, EngineError, RunChange, RunHandle};
pub use failpoint::{Faults, Point, Strike};
pub use fault::{Fault, Halt, Reason};
pub use intake::setup_queue;
pub use invariants::{AlsoPromised, Look, Violation, check_invariants};
pub use operate::{Asker, OperateError, allowed_actions};
pub use pool::Pool;
pub use registry::{Kind, NotAgain, OnExhausted, PlannedStep, Registry, Workflow};
pub use retry::Retry;
pub use run::Run;
pub use schedule::{Missed, Overlap, Schedule, ScheduleError, ScheduleResult, ScheduleView};
pub use settings::Settings;
pub use signal::Signalled;
pub use start::{Start, StartError, Started};
pub use state::{Cause, Op, RunState, StepState};
pub use stats::Stats;
pub use tally::{Durations, StepLabel, Tallies, Tally};
pub use workers::Workers;
