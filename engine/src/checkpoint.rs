//! A checkpoint is one guarded write: "step N done" and "step N+1 intended" together, or a run coming to rest.
//!
//! The guard is (owner, epoch, seq) and, when the run goes to rest on a signal, the number of signals it had seen.
//! No row changed means the driver lost the run and must stop at once.

mod batch;
mod one;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::state::{Cause, Op, RunState, StepState};
use batch::Columns;

#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    pub(crate) run: Uuid,
    pub(crate) epoch: i64,
    pub(crate) seq: i32,
    /// Tells this write from any other when the connection dies between COMMIT and its answer.
    pub(crate) token: Uuid,
    pub(crate) fate: Fate,
    pub(crate) pivot: bool,
    pub(crate) step_deadline: Option<DateTime<Utc>>,
    /// The queue's row for this drive, if it came by one.
    pub(crate) job: Option<Arc<str>>,
    pub(crate) correlation_id: Arc<str>,
    pub(crate) trace_id: Option<Arc<str>>,
    pub(crate) entries: Entries,
}

/// What becomes of the run row.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// The driver goes on.
    GoOn,
    /// The driver goes on backwards.
    TurnBack { error: Option<String> },
    /// The run is released: it waits, is paused, put back, or stuck.
    Rest(Box<Rest>),
    /// The run is over.
    Finish { state: RunState, output: Option<String>, error: Option<String> },
}

#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub(crate) state: RunState,
    pub(crate) cause: Option<Cause>,
    pub(crate) detail: Option<String>,
    pub(crate) wake_at: Option<DateTime<Utc>>,
    /// Rest only if no signal came since the driver looked.
    pub(crate) seen: Option<i32>,
    pub(crate) clears_request: bool,
    pub(crate) error: Option<String>,
}

impl Rest {
    pub(crate) fn new(state: RunState, cause: Option<Cause>) -> Rest {
        Rest { state, cause, detail: None, wake_at: None, seen: None, clears_request: false, error: None }
    }
}

/// Journal rows that travel with a checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    pub(crate) settles: Vec<Settle>,
    pub(crate) intends: Vec<Intend>,
    pub(crate) tried: Vec<Tried>,
    /// Signals used up, by name and dedupe key.
    pub(crate) taken: Vec<(String, String)>,
}

impl Entries {
    pub(crate) fn add(&mut self, more: &Entries) {
        self.settles.extend_from_slice(&more.settles);
        self.intends.extend_from_slice(&more.intends);
        self.tried.extend_from_slice(&more.tried);
        self.taken.extend_from_slice(&more.taken);
    }
}

/// An existing journal row changes state.
#[derive(Debug, Clone)]
pub(crate) struct Settle {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) state: StepState,
    pub(crate) attempt: i32,
    pub(crate) undo_attempt: i32,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// A new journal row.
#[derive(Debug, Clone)]
pub(crate) struct Intend {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) seq: i32,
    pub(crate) op: Op,
    pub(crate) state: StepState,
    pub(crate) undoable: bool,
    pub(crate) input_hash: Vec<u8>,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) deadline_at: Option<DateTime<Utc>>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// One try of a step, for the history.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) undo: bool,
    pub(crate) attempt: i32,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<String>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) at: DateTime<Utc>,
}

/// What a driver learns from its committed checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moved {
    pub(crate) request: Option<String>,
    pub(crate) signals: i32,
}

impl Checkpoint {
    /// Did the run get further? Beginning the same step once more does not count, so that a crash loop is noticed.
    fn is_progress(&self) -> bool {
        let begun_again = |s: &Settle| matches!(s.state, StepState::Running | StepState::Compensating);
        !matches!(self.fate, Fate::GoOn)
            || !self.entries.intends.is_empty()
            || self.entries.settles.iter().any(|s| !begun_again(s))
    }

    /// Nothing but the position and the journal changes.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self.fate, Fate::GoOn) && self.entries.taken.is_empty()
    }

    /// What a lone run usually writes: the step before it settled, the next one begun.
    fn is_simple(&self) -> bool {
        let e = &self.entries;
        self.goes_on() && e.settles.len() <= 1 && e.intends.len() <= 1 && e.tried.len() <= 2
    }

    /// A rough size, to bound a batch.
    pub(crate) fn bytes(&self) -> usize {
        let text = |t: &Option<String>| t.as_ref().map_or(0, String::len);
        let settles: usize = self.entries.settles.iter().map(|s| text(&s.output) + text(&s.error)).sum();
        let intends: usize = self.entries.intends.iter().map(|i| text(&i.input) + text(&i.output)).sum();
        512 + settles + intends
    }
}

/// The batch had a run whose guard did not hold; nothing was written.
pub(crate) fn is_fence(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|e| e.code()).is_some_and(|code| code == "GE001")
}

/// Writes a batch on one connection, all or nothing. Sorted by run so that batches lock in one order.
pub(crate) async fn write(
    conn: &mut PgConnection,
    owner: Uuid,
    batch: &[&Checkpoint],
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    if let [one] = batch
        && one.is_simple()
    {
        return one::advance(conn, owner, one).await;
    }
    let mut batch = batch.to_vec();
    batch.sort_unstable_by_key(|c| c.run);
    let columns = Columns::of(&batch);
    if batch.iter().all(|c| c.goes_on()) {
        columns.advance(conn, owner).await
    } else {
        columns.settle(conn, owner).await
    }
}
