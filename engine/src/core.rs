//! The part of a drive that does not depend on the workflow: position, journal, what is done but not yet committed,
//! and how a run goes on, turns back or comes to rest.
//!
//! A finished step's result is held until the function asks for its next operation; then one checkpoint commits
//! "N done" and "N+1 intended", and only after that commit does N+1 run.

mod commit;
mod fate;

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::checkpoint::Entries;
use crate::claim::Claimed;
use crate::clock::DbClock;
use crate::committer::Committer;
use crate::engine::Inner;
use crate::event::{Event, Intend, Settle, Tried};
use crate::failpoint::{Point, Strike};
use crate::fault::{Fault, Halt, Reason, Stop};
use crate::journal::{Entry, Journal, Kept, StepId};
use crate::payload::{self, PayloadError};
use crate::registry::Kind;
use crate::reins::Reins;
use crate::state::{Cause, Op, StepState};
use crate::tally::StepLabel;

pub(crate) struct Core {
    pub(crate) engine: Arc<Inner>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) owner: Uuid,
    pub(crate) reins: Arc<Reins>,
    pub(crate) kind: Kind,
    pub(crate) run: Uuid,
    pub(crate) job: Option<Arc<str>>,
    pub(crate) project_id: Uuid,
    pub(crate) org_id: Option<Uuid>,
    pub(crate) correlation_id: Arc<str>,
    pub(crate) trace_id: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    pub(crate) target: Option<String>,
    pub(crate) parent: Option<(Uuid, String)>,
    pub(crate) epoch: i64,
    pub(crate) clock: DbClock,
    pub(crate) journal: Journal,
    pub(crate) kept: Vec<Kept>,
    pub(crate) unwinding: bool,
    pub(crate) output: Option<String>,
    seq: i32,
    /// How many signals the run had when `kept` was read, and how many it had at the last checkpoint.
    signals_seen: i32,
    signals_known: i32,
    pivoted: bool,
    pivot_due: bool,
    held: Entries,
}

/// How an operation stands in the journal.
pub(crate) enum Found {
    /// It is finished; this was its output.
    Answered(String),
    /// It was begun, by this driver or one before it.
    Open,
    New,
}

impl Core {
    pub(crate) fn new(
        engine: Arc<Inner>,
        committer: Arc<Committer>,
        owner: Uuid,
        reins: Arc<Reins>,
        kind: Kind,
        job: Option<String>,
        claimed: Claimed,
    ) -> Core {
        reins.learn(claimed.request.as_deref());
        if claimed.cancelling {
            reins.cancel_was_accepted();
        }
        Core {
            engine,
            committer,
            owner,
            reins,
            kind,
            run: claimed.id,
            job: job.map(Into::into),
            project_id: claimed.project_id,
            org_id: claimed.org_id,
            correlation_id: claimed.correlation_id.into(),
            trace_id: claimed.trace_id.map(Into::into),
            traceparent: claimed.traceparent.map(Into::into),
            target: claimed.target,
            parent: claimed.parent,
            epoch: claimed.epoch,
            clock: DbClock::read_at(claimed.now),
            journal: claimed.journal,
            kept: claimed.kept,
            unwinding: claimed.unwinding,
            output: None,
            seq: claimed.seq,
            signals_seen: claimed.signals,
            signals_known: claimed.signals,
            pivoted: claimed.pivoted,
            pivot_due: false,
            held: Entries::default(),
        }
    }

    /// The point of no return: from the next checkpoint on nothing unwinds. A run that is on its way back only comes by.
    pub(crate) fn pivot(&mut self) {
        self.pivot_due = !self.unwinding;
    }

    fn past_pivot(&self) -> bool {
        self.pivoted || self.pivot_due
    }

    /// Nothing was begun, and nothing is to be.
    pub(crate) fn turned_back_unbegun(&self) -> bool {
        self.unwinding && self.journal.len() == 0
    }

    /// A cancel no longer changes where this run goes. Until the pivot is committed it is accepted, and so it is obeyed.
    pub(crate) fn deaf_to_cancel(&self) -> bool {
        self.unwinding || self.pivoted
    }

    /// Looks an operation up and stops the function where it must not go on.
    pub(crate) async fn look(&mut self, id: &StepId, hash: &[u8]) -> Result<Found, Halt> {
        let found = match self.journal.get(id) {
            Some(entry) if entry.input_hash != hash => {
                let detail = json!({"step": id.to_string(), "problem": "the step was given another input than the journal has"});
                return Err(self.quarantine(Cause::Nondeterministic, detail).await);
            }
            Some(Entry { output: Some(output), .. }) => return Ok(Found::Answered(output.clone())),
            Some(_) => Found::Open,
            None => Found::New,
        };
        if self.unwinding {
            return Err(Stop::Turned.into());
        }
        if id.key.contains('\0') {
            let fault = PayloadError::Nul.fault("the step's key");
            return Err(self.turn_back(fault.reason()).await);
        }
        // Past the pivot there is no way back to turn to, and what still has to be done is little.
        let rows = self.journal.len().max(usize::try_from(self.seq).unwrap_or(0));
        let full = rows >= self.engine.settings.max_journal_rows && !self.past_pivot();
        if full && matches!(found, Found::New) {
            let fault = Fault::terminal("journal_full", "the run has more steps than a journal may hold");
            return Err(self.turn_back(fault.reason()).await);
        }
        self.obey().await?;
        Ok(found)
    }

    /// Registers a new operation in memory; `note` or `intend` makes it durable.
    pub(crate) fn open(&mut self, id: &StepId, op: Op, undoable: bool, hash: Vec<u8>, input: Option<String>) {
        let entry = Entry {
            pos: i32::try_from(self.journal.len()).unwrap_or(i32::MAX),
            op,
            written: false,
            state: StepState::Pending,
            undoable,
            attempt: 1,
            attempt_base: 0,
            undo_attempt: 0,
            undo_base: 0,
            input_hash: hash,
            input,
            output: None,
            deadline_at: None,
            started_at: self.clock.now(),
        };
        self.journal.insert(id, entry);
    }

    /// Changes a journal row in memory and holds the change for the next checkpoint.
    pub(crate) fn note(
        &mut self,
        id: &StepId,
        state: StepState,
        output: Option<String>,
        error: Option<String>,
    ) {
        let now = self.clock.now();
        let Some(entry) = self.journal.get_mut(id) else { return };
        entry.state = state;
        if output.is_some() {
            entry.output.clone_from(&output);
        }
        let finished_at = matches!(
            state,
            StepState::Succeeded | StepState::Failed | StepState::Compensated | StepState::Ambiguous
        )
        .then_some(now);
        if entry.written {
            self.held.events.push(Event::Settle(Settle {
                name: id.name.to_owned(),
                key: id.key.clone(),
                state,
                attempt: entry.attempt,
                undo_attempt: entry.undo_attempt,
                output,
                error,
                finished_at,
            }));
        } else {
            entry.written = true;
            self.held.events.push(Event::Intend(Intend {
                name: id.name.to_owned(),
                key: id.key.clone(),
                pos: entry.pos,
                op: entry.op,
                state,
                undoable: entry.undoable,
                input_hash: entry.input_hash.clone(),
                input: entry.input.take(),
                output,
                error,
                deadline_at: entry.deadline_at,
                started_at: entry.started_at,
                finished_at,
            }));
        }
    }

    pub(crate) fn tried(
        &mut self,
        id: &StepId,
        undo: bool,
        attempt: i32,
        started_at: DateTime<Utc>,
        outcome: &'static str,
        error: Option<String>,
    ) {
        let at = self.clock.now();
        self.tally(id, undo, outcome, at - started_at);
        let (name, key) = (id.name.to_owned(), id.key.clone());
        self.held.tried(Tried { name, key, undo, attempt, outcome, error, started_at, at });
    }

    /// Counts how a try of a step ended.
    pub(crate) fn tally(&self, id: &StepId, undo: bool, outcome: &'static str, took: TimeDelta) {
        let of = StepLabel { workflow: self.kind.name, step: id.name, undo };
        self.engine.stats.tallies.tried(of, outcome, took);
    }

    /// Takes back an insert that was held but not written, so that the row can be noted afresh.
    pub(crate) fn unheld(&mut self, id: &StepId) {
        let events = &mut self.held.events;
        let held = events.iter().position(|e| matches!(e, Event::Intend(_)) && e.is_of(id.name, &id.key));
        let (Some(at), Some(entry)) = (held, self.journal.get_mut(id)) else { return };
        if let Event::Intend(intend) = events.remove(at) {
            entry.input = intend.input;
        }
        entry.written = false;
    }

    /// Forgets the operation that was about to begin, if one is held: it was not written and will not be.
    fn unopen(&mut self) {
        let events = &mut self.held.events;
        let begun = events.iter().position(|e| matches!(e, Event::Intend(i) if i.finished_at.is_none()));
        if let Some(at) = begun
            && let Event::Intend(intend) = events.remove(at)
        {
            self.journal.remove(&intend.name, &intend.key);
        }
    }

    /// Uses up a kept signal, if one with this name came.
    pub(crate) fn take_signal(&mut self, name: &str) -> Option<String> {
        let at = self.kept.iter().position(|kept| kept.name == name)?;
        let kept = self.kept.remove(at);
        self.held.taken.push((kept.name, kept.dedupe_key));
        Some(kept.payload)
    }

    /// Evidence as the row may hold it; too much of it is cut down to a sentence.
    pub(crate) fn detail(&self, evidence: &Value) -> String {
        let text = evidence.to_string();
        let limit = self.engine.settings.max_error;
        match payload::check(&text, limit, &self.engine.settings) {
            Ok(()) => text,
            Err(_) => json!({"problem": payload::clip(&text, limit / 2)}).to_string(),
        }
    }

    pub(crate) fn words(&self, reason: &Reason) -> String {
        let message = payload::clip(&reason.message, self.engine.settings.max_error / 2);
        json!({"code": payload::clip(&reason.code, 128), "message": message}).to_string()
    }

    pub(crate) fn point(&self, id: &StepId, undo: bool, place: &'static str) -> Result<(), Halt> {
        match self.strike(id, undo, place) {
            Some(Strike::Crash) => Err(Stop::Crashed.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn strike(&self, id: &StepId, undo: bool, place: &'static str) -> Option<Strike> {
        let faults = self.engine.faults.as_ref()?;
        faults.strike(&Point { kind: self.kind.name, step: id.name, undo, place })
    }
}
