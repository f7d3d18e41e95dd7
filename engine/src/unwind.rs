//! Undo, in reverse order of what was begun: completed and ambiguous steps alike, each with attempts of its own.
//! An undo that fails for good leaves the run `stuck` with what remains listed, never "failed".

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tracing::Instrument;

use crate::activity::{Activity, Call};
use crate::checkpoint::Rest;
use crate::failpoint::Strike;
use crate::fault::{Fault, Halt, Reason, Stop};
use crate::journal::StepId;
use crate::operate::{self, Cancelled};
use crate::retry::Retry;
use crate::run::{Run, child_start_key, panic_message};
use crate::state::{Cause, RunState, StepState};
use crate::trace;

/// A step that may have to be undone.
pub(crate) enum Noted<E> {
    Activity { id: StepId, undo: Box<dyn Undo<E>> },
    Child { id: StepId },
}

impl<E: Send + Sync + 'static> Noted<E> {
    pub(crate) fn id(&self) -> &StepId {
        match self {
            Noted::Activity { id, .. } | Noted::Child { id } => id,
        }
    }

    pub(crate) fn activity<A: Activity<Env = E>>(id: StepId, activity: A) -> Noted<E> {
        Noted::Activity { id, undo: Box::new(Undoable(activity)) }
    }
}

pub(crate) trait Undo<E>: Send + Sync {
    fn undo<'a>(&'a self, env: &'a E, call: &'a Call) -> BoxFuture<'a, Result<(), Fault>>;
    fn rule(&self) -> Retry;
    fn timeout(&self) -> Duration;
}

struct Undoable<A>(A);

impl<A: Activity> Undo<A::Env> for Undoable<A> {
    fn undo<'a>(&'a self, env: &'a A::Env, call: &'a Call) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(self.0.undo(env, call))
    }

    fn rule(&self) -> Retry {
        // What must not stay behind deserves more than one try, even where doing it did not.
        Retry { attempts: A::RETRY.attempts.max(Retry::STANDARD.attempts), ..A::RETRY }
    }

    fn timeout(&self) -> Duration {
        A::TIMEOUT
    }
}

impl<E: Send + Sync + 'static> Run<E> {
    /// Undoes everything noted and ends the run.
    pub(crate) async fn unwind(&mut self) -> Halt {
        for noted in std::mem::take(&mut self.noted).iter().rev() {
            let done = match noted {
                Noted::Activity { id, undo } => self.undo(id, undo.as_ref()).await,
                Noted::Child { id } => self.undo_child(id).await,
            };
            if let Err(halt) = done {
                return halt;
            }
        }
        // What the journal has and the function no longer reaches cannot be undone by it, and must not be forgotten.
        if !self.core.journal.owed().is_empty() {
            let detail = json!({"problem": "the workflow no longer reaches steps that it began"});
            return self.core.quarantine(Cause::Nondeterministic, detail).await;
        }
        let state = if self.core.reins.cancelling() { RunState::Cancelled } else { RunState::Compensated };
        self.core.finish(state, None).await
    }

    async fn undo(&mut self, id: &StepId, undo: &dyn Undo<E>) -> Result<(), Halt> {
        if !self.core.journal.owes(id) {
            return Ok(());
        }
        loop {
            self.core.obey().await?;
            let attempt = self.begin_undo(id);
            self.core.go_on(id, true, Some(undo.timeout())).await?;
            let started = self.core.clock.now();
            let call = self.call(id, attempt, true);
            let env = Arc::clone(&self.env);
            self.core.point(id, true, "before-effect")?;
            let struck = self.core.strike(id, true, "before-effect");
            let effect = async {
                match struck {
                    Some(Strike::Fail(fault)) => Err(fault),
                    _ => undo.undo(&env, &call).await,
                }
            };
            let span = trace::step(id, attempt, true);
            let effect = effect.instrument(span.clone());
            let guarded = AssertUnwindSafe(tokio::time::timeout(undo.timeout(), effect)).catch_unwind();
            let ended = tokio::select! {
                ended = guarded => ended,
                () = self.core.reins.pulled(true) => {
                    self.core.tried(id, true, attempt, started, "cancelled", None);
                    continue;
                }
            };
            self.core.point(id, true, "after-effect")?;
            let (fault, outcome) = match ended {
                Ok(Ok(Ok(()))) => {
                    self.core.tried(id, true, attempt, started, "succeeded", None);
                    self.core.note(id, StepState::Compensated, None, None);
                    return Ok(());
                }
                Ok(Ok(Err(fault))) => {
                    let outcome = if matches!(fault, Fault::Retry(_)) { "retry" } else { "terminal" };
                    (fault, outcome)
                }
                Ok(Err(_elapsed)) => {
                    (Fault::retry("timed_out", "the undo did not answer in time"), "timed_out")
                }
                Err(panic) => (Fault::retry("panicked", panic_message(&*panic)), "retry"),
            };
            trace::failed(&span);
            let error = self.core.words(fault.reason());
            self.core.tried(id, true, attempt, started, outcome, Some(error));
            self.undo_failed(id, attempt, &fault, undo.rule()).await?;
        }
    }

    fn begin_undo(&mut self, id: &StepId) -> i32 {
        let Some(entry) = self.core.journal.get_mut(id) else { return 1 };
        entry.undo_attempt += 1;
        let attempt = entry.undo_attempt;
        self.core.note(id, StepState::Compensating, None, None);
        attempt
    }

    async fn undo_failed(
        &mut self,
        id: &StepId,
        attempt: i32,
        fault: &Fault,
        rule: Retry,
    ) -> Result<(), Halt> {
        let base = self.core.journal.get(id).map_or(0, |e| e.undo_base);
        let used = u32::try_from(attempt - base).unwrap_or(1);
        if !matches!(fault, Fault::Retry(_)) || used >= rule.attempts {
            return Err(self.stick(id, fault.reason()).await);
        }
        let delay = rule.delay(used);
        if delay < self.core.engine.settings.inline_retry {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.core.reins.pulled(true) => {}
            }
            return Ok(());
        }
        let detail =
            self.core.detail(&json!({"step": id.to_string(), "undo": true, "error": fault.reason()}));
        let rest = Rest {
            wake_at: Some(self.core.clock.after(delay)),
            detail: Some(detail),
            ..Rest::new(RunState::Compensating, Some(Cause::Backoff))
        };
        Err(self.core.rest(rest).await)
    }

    async fn stick(&mut self, id: &StepId, reason: &Reason) -> Halt {
        let remaining = self.core.journal.owed();
        let detail =
            self.core.detail(&json!({"step": id.to_string(), "error": reason, "remaining": remaining}));
        let rest = Rest { detail: Some(detail), ..Rest::new(RunState::Stuck, Some(Cause::UndoFailed)) };
        self.core.rest(rest).await
    }

    /// Whoever waits for the target takes over what nobody else undoes.
    async fn is_awaited(&self) -> Result<bool, Halt> {
        let Some(target) = &self.core.target else { return Ok(false) };
        let awaited = operate::is_awaited(&self.core.engine, target);
        self.core.engine.db.in_time(awaited).await.map_err(|_database| Stop::Lost.into())
    }

    /// Cancels the child and rests until it has ended; its last commit wakes this run.
    async fn undo_child(&mut self, id: &StepId) -> Result<(), Halt> {
        if !self.core.journal.owes(id) {
            return Ok(());
        }
        loop {
            self.core.obey().await?;
            let key = child_start_key(self.core.run, id);
            self.core.point(id, true, "before-effect")?;
            let Ok(cancelled) = operate::cancel_child(&self.core.engine, &key).await else {
                return Err(Stop::Lost.into());
            };
            self.core.point(id, true, "after-effect")?;
            match cancelled {
                Cancelled::Ended => {
                    self.core.note(id, StepState::Compensated, None, None);
                    return Ok(());
                }
                Cancelled::Stuck { child } if self.is_awaited().await? => {
                    let message = format!("the child run {child} is stuck");
                    return Err(self.stick(id, &Reason { code: "child_stuck".to_owned(), message }).await);
                }
                Cancelled::Stuck { .. } | Cancelled::Going => {}
            }
            self.core.engine.bell.ring();
            let rest = Rest {
                detail: Some(self.core.detail(&json!({"child": id.to_string()}))),
                ..Rest::new(RunState::Compensating, Some(Cause::WaitingForRun))
            };
            self.core.rest_unless_signalled(rest, id).await?;
        }
    }
}
