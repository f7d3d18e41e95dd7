//! A checkpoint is one guarded write: "step N done" and "step N+1 intended" together, or a run coming to rest.
//!
//! The guard is (owner, epoch) on the run's row, the position in the journal and, when the run goes to rest on a signal or
//! gives up waiting for it, the number of signals it had seen; a run that succeeds or passes its pivot was not asked to cancel. A
//! guard that does not hold means the driver lost the run and must stop at once, or that it must look again.

mod batch;
mod one;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::event::{Event, Tried};
use crate::state::{Cause, RunState};

#[derive(Debug, Clone)]
pub(crate) struct Checkpoint {
    pub(crate) run: Uuid,
    pub(crate) epoch: i64,
    pub(crate) seq: i32,
    /// Tells this write from any other when the connection dies between COMMIT and its answer.
    pub(crate) token: Uuid,
    pub(crate) fate: Fate,
    /// Write only if no signal came since the driver looked: how many there were.
    pub(crate) seen: Option<i32>,
    /// Write only if nobody asked for a cancel: this is the end or the pivot, and the last chance to obey.
    pub(crate) heeds_cancel: bool,
    pub(crate) pivot: bool,
    /// When the step begun here counts as lost.
    pub(crate) deadline_at: Option<DateTime<Utc>>,
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
    pub(crate) clears_request: bool,
    pub(crate) error: Option<String>,
}

impl Rest {
    pub(crate) fn new(state: RunState, cause: Option<Cause>) -> Rest {
        Rest { state, cause, detail: None, wake_at: None, clears_request: false, error: None }
    }
}

/// What travels with a checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    /// The journal row, in the order it happened.
    pub(crate) events: Vec<Event>,
    /// Tries that did not succeed, for the history.
    pub(crate) failures: Vec<Tried>,
    /// Signals used up, by name and dedupe key.
    pub(crate) taken: Vec<(String, String)>,
}

impl Entries {
    pub(crate) fn add(&mut self, more: &Entries) {
        self.events.extend_from_slice(&more.events);
        self.failures.extend_from_slice(&more.failures);
        self.taken.extend_from_slice(&more.taken);
    }

    pub(crate) fn tried(&mut self, tried: Tried) {
        if matches!(tried.outcome, "succeeded" | "found_done") {
            self.events.push(Event::Tried(tried));
        } else {
            self.failures.push(tried);
        }
    }
}

/// What a driver learns from its committed checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moved {
    pub(crate) request: Option<String>,
    pub(crate) signals: i32,
}

impl Moved {
    /// Whether a run that stands so must look again before this may be written.
    pub(crate) fn came_before(&self, checkpoint: &Checkpoint) -> bool {
        let signalled = checkpoint.seen.is_some_and(|seen| seen != self.signals);
        signalled || (checkpoint.heeds_cancel && self.request.as_deref() == Some("cancel"))
    }
}

impl Checkpoint {
    /// Did the run get further? A claim that changes nothing is counted, so that a crash loop is noticed.
    fn is_progress(&self) -> bool {
        !matches!(self.fate, Fate::GoOn) || self.entries.events.iter().any(Event::is_progress)
    }

    /// Nothing but the journal changes.
    pub(crate) fn goes_on(&self) -> bool {
        let Entries { failures, taken, .. } = &self.entries;
        let plain = matches!(self.fate, Fate::GoOn) && !self.pivot && self.seen.is_none();
        plain && failures.is_empty() && taken.is_empty()
    }

    /// The run ends, and neither the queue nor the histories of tries and signals have anything to learn from it.
    fn just_ends(&self) -> Option<one::End<'_>> {
        let Entries { failures, taken, .. } = &self.entries;
        match &self.fate {
            Fate::Finish { state, output, error }
                if self.job.is_none() && self.seen.is_none() && failures.is_empty() && taken.is_empty() =>
            {
                Some(one::End {
                    state: *state,
                    output: output.as_deref(),
                    error: error.as_deref(),
                    heeds_cancel: self.heeds_cancel,
                })
            }
            _ => None,
        }
    }

    /// A rough size, to bound a batch.
    pub(crate) fn bytes(&self) -> usize {
        256 + self.entries.events.iter().map(Event::bytes).sum::<usize>()
    }
}

/// Somebody else wrote at this position; nothing was written here.
pub(crate) fn is_fence(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|e| e.constraint() == Some("journal_pkey"))
}

/// Writes a batch on one connection; runs that are no longer ours are missing from the answer. Sorted by run so that
/// batches lock in one order.
pub(crate) async fn write(
    conn: &mut PgConnection,
    owner: Uuid,
    batch: &[&Checkpoint],
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let going_on = batch.iter().all(|c| c.goes_on());
    if let [one] = batch {
        if going_on {
            return one::advance(conn, owner, one).await;
        }
        if let Some(end) = one.just_ends() {
            return one::finish(conn, owner, one, end).await;
        }
    }
    let mut batch = batch.to_vec();
    batch.sort_unstable_by_key(|c| c.run);
    if going_on {
        batch::advance(conn, owner, &batch).await
    } else {
        batch::settle(conn, owner, &batch).await
    }
}
