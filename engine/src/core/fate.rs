//! Where a run goes from here: on, back, to rest, or to its end. Each way is one checkpoint that also says why.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Core;
use crate::checkpoint::{Checkpoint, Entries, Fate, Rest};
use crate::fault::{Fault, Halt, Reason, Stop};
use crate::journal::{Kept, StepId};
use crate::registry::OnExhausted;
use crate::reins::Request;
use crate::retry::Retry;
use crate::state::{Cause, RunState, StepState};

impl Core {
    /// Commits a try that failed and says what comes of it: the number of the next try, or the end of this drive.
    pub(crate) async fn failed(
        &mut self,
        id: &StepId,
        started: DateTime<Utc>,
        outcome: &'static str,
        fault: &Fault,
        rule: Retry,
    ) -> Result<(), Halt> {
        self.engine.stats.steps_failed.fetch_add(1, Relaxed);
        let Some(entry) = self.journal.get(id) else { return Err(Stop::Fenced.into()) };
        let (attempt, used) = (entry.attempt, (entry.attempt - entry.attempt_base).max(0));
        let error = self.words(fault.reason());
        tracing::info!(step = %id, attempt, outcome, code = fault.reason().code, "a step failed");
        self.tried(id, false, attempt, started, outcome, Some(error.clone()));
        let exhausted = u32::try_from(used).unwrap_or(0) >= rule.attempts;
        match fault {
            Fault::Retry(_) if !exhausted => {
                let delay = rule.delay(u32::try_from(used).unwrap_or(1));
                return self.try_again(id, delay, error).await;
            }
            Fault::NeedsOperator(reason) => {
                self.note(id, StepState::Failed, None, Some(error));
                return Err(self.exhausted(id, reason, None).await);
            }
            Fault::Retry(reason) | Fault::Terminal(reason) => {
                self.note(id, StepState::Failed, None, Some(error));
                let pause = matches!(fault, Fault::Retry(_)) && self.kind.on_exhausted == OnExhausted::Pause;
                if self.past_pivot() {
                    let again = self.clock.after(self.engine.settings.slow_retry);
                    Err(self.exhausted(id, reason, Some(again)).await)
                } else if pause {
                    Err(self.exhausted(id, reason, None).await)
                } else {
                    Err(self.turn_back(reason).await)
                }
            }
        }
    }

    /// Short waits stay in the driver; long ones release the run until the database's clock says so.
    async fn try_again(&mut self, id: &StepId, delay: Duration, error: String) -> Result<(), Halt> {
        if delay < self.engine.settings.inline_retry {
            self.note(id, StepState::Pending, None, Some(error));
            self.checkpoint(Fate::GoOn, None).await?;
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.reins.pulled(self.deaf_to_cancel()) => {}
            }
            return self.obey().await;
        }
        self.note(id, StepState::Pending, None, Some(error.clone()));
        let rest = Rest {
            wake_at: Some(self.clock.after(delay)),
            detail: Some(self.detail(
                &json!({"step": id.to_string(), "error": serde_json::from_str::<Value>(&error).ok()}),
            )),
            ..Rest::new(RunState::Waiting, Some(Cause::Backoff))
        };
        Err(self.rest(rest).await)
    }

    async fn exhausted(&mut self, id: &StepId, reason: &Reason, again: Option<DateTime<Utc>>) -> Halt {
        let detail = json!({"step": id.to_string(), "error": reason});
        let rest = Rest {
            detail: Some(self.detail(&detail)),
            wake_at: again,
            error: Some(self.words(reason)),
            ..Rest::new(RunState::Paused, Some(Cause::RetriesExhausted))
        };
        self.rest(rest).await
    }

    /// The try was cut short from outside; whether it took effect is unknown.
    pub(crate) fn interrupted(&mut self, id: &StepId, started: DateTime<Utc>) {
        let attempt = self.journal.get(id).map_or(1, |e| e.attempt);
        self.tried(id, false, attempt, started, "cancelled", None);
        self.note(id, StepState::Ambiguous, None, None);
    }

    /// Does what an operator or the stopping process asked, if anything.
    pub(crate) async fn obey(&mut self) -> Result<(), Halt> {
        if self.reins.draining() {
            return Err(self.rest(self.put_back()).await);
        }
        match self.reins.request() {
            Some(Request::Pause) => {
                let rest = Rest {
                    clears_request: true,
                    ..Rest::new(RunState::Paused, Some(Cause::PausedByOperator))
                };
                Err(self.rest(rest).await)
            }
            Some(Request::Cancel) if !self.deaf_to_cancel() => Err(self.cancel().await),
            _ => Ok(()),
        }
    }

    /// A cancel came before the checkpoint at hand, which would have committed the pivot or begun something; what that held is
    /// held again. Boxed, because it ends with a checkpoint, which may come back here.
    pub(crate) fn heed_cancel(&mut self) -> BoxFuture<'_, Halt> {
        self.reins.learn(Some("cancel"));
        self.unopen();
        Box::pin(self.cancel())
    }

    async fn cancel(&mut self) -> Halt {
        self.pivot_due = false;
        let reason = Reason { code: "cancelled".into(), message: "an operator cancelled the run".into() };
        self.turn_back(&reason).await
    }

    /// The function came to its end. A cancel that was accepted before that is obeyed all the same, wherever it was asked for.
    pub(crate) async fn succeed(&mut self) -> Halt {
        let heeds_cancel = !self.deaf_to_cancel();
        if heeds_cancel && self.reins.cancelling() {
            return self.cancel().await;
        }
        // Whatever the function came by has ended. What is left its code no longer reaches, and nobody would wait for it.
        let unfinished = self.journal.unfinished();
        if !unfinished.is_empty() {
            let problem = "the workflow came to its end past steps that it began";
            let detail = Some(self.detail(&json!({"problem": problem, "unfinished": unfinished})));
            let rest = Rest { detail, ..Rest::new(RunState::Paused, Some(Cause::Nondeterministic)) };
            return self.rest(rest).await;
        }
        let held = self.held.clone();
        let fate = Fate::Finish { state: RunState::Succeeded, output: self.output.take(), error: None };
        let checkpoint = Checkpoint { heeds_cancel, ..self.draft(fate, None) };
        match self.submit(checkpoint).await {
            Ok(Some(_)) => Stop::Rested.into(),
            Ok(None) => {
                self.held = held;
                self.heed_cancel().await
            }
            Err(halt) => halt,
        }
    }

    /// Turns the run around, or ends it where nothing has to be undone.
    pub(crate) async fn turn_back(&mut self, reason: &Reason) -> Halt {
        if self.unwinding {
            return Stop::Turned.into();
        }
        let error = Some(self.words(reason));
        if self.past_pivot() {
            let detail = json!({"error": reason, "problem": "the run failed past its point of no return"});
            let mut rest = Rest::new(RunState::Paused, Some(Cause::RetriesExhausted));
            rest.detail = Some(self.detail(&detail));
            rest.error = error;
            return self.rest(rest).await;
        }
        let unbegun = self.reins.cancelling() && self.journal.len() == 0;
        if self.journal.owed().is_empty() && !unbegun {
            let state = if self.reins.cancelling() { RunState::Cancelled } else { RunState::Failed };
            return self.finish(state, error).await;
        }
        if let Err(halt) = self.checkpoint(Fate::TurnBack { error }, None).await {
            return halt;
        }
        self.unwinding = true;
        // Only its function knows the first step, which is owed: it is asked once more, for the way back.
        if unbegun { self.rest(self.put_back()).await } else { Stop::Turned.into() }
    }

    /// Somebody goes on with it at once.
    fn put_back(&self) -> Rest {
        let state = if self.unwinding { RunState::Compensating } else { RunState::Queued };
        Rest { wake_at: Some(self.clock.now()), ..Rest::new(state, None) }
    }

    pub(crate) async fn finish(&mut self, state: RunState, error: Option<String>) -> Halt {
        let fate = Fate::Finish { state, output: self.output.take(), error };
        match self.checkpoint(fate, None).await {
            Ok(()) => Stop::Rested.into(),
            Err(halt) => halt,
        }
    }

    /// Stops a run that must not go on as it is; only an operator moves it. On its way back that is an undo that failed for good:
    /// it sticks, so that whoever waits for its target takes over what is still owed.
    pub(crate) async fn quarantine(&mut self, cause: Cause, detail: Value) -> Halt {
        self.held = Entries::default();
        let rest = self.parked(cause, detail);
        self.rest(rest).await
    }

    /// What a quarantined run rests as.
    pub(super) fn parked(&self, cause: Cause, mut detail: Value) -> Rest {
        if self.unwinding
            && let Some(fields) = detail.as_object_mut()
        {
            fields.insert("remaining".to_owned(), json!(self.journal.owed()));
        }
        let detail = Some(self.detail(&detail));
        let state = if self.unwinding { RunState::Stuck } else { RunState::Paused };
        Rest { detail, ..Rest::new(state, Some(cause)) }
    }

    pub(crate) async fn rest(&mut self, rest: Rest) -> Halt {
        match self.checkpoint(Fate::Rest(Box::new(rest)), None).await {
            Ok(()) => Stop::Rested.into(),
            Err(halt) => halt,
        }
    }

    /// Comes to rest unless a signal arrived meanwhile; then `Ok` says: look again.
    pub(crate) async fn rest_unless_signalled(&mut self, rest: Rest, id: &StepId) -> Result<(), Halt> {
        if self.signals_known != self.signals_seen {
            return self.reload_signals().await;
        }
        self.point(id, false, "before-rest")?;
        let held = self.held.clone();
        let mut checkpoint = self.draft(Fate::Rest(Box::new(rest)), None);
        checkpoint.seen = Some(self.signals_seen);
        match self.submit(checkpoint).await? {
            Some(_) => {
                self.point(id, false, "after-rest")?;
                Err(Stop::Rested.into())
            }
            None => {
                self.held = held;
                self.reload_signals().await
            }
        }
    }

    /// Journals that a wait ended by its deadline, unless a signal arrived meanwhile: that came first, and `false` says to
    /// look again.
    pub(crate) async fn give_up_unless_signalled(
        &mut self,
        id: &StepId,
        outcome: &str,
    ) -> Result<bool, Halt> {
        if self.signals_known == self.signals_seen {
            let (entry, held) = (self.journal.get(id).cloned(), self.held.clone());
            self.note(id, StepState::Failed, Some(outcome.to_owned()), None);
            let mut checkpoint = self.draft(Fate::GoOn, None);
            checkpoint.seen = Some(self.signals_seen);
            if self.submit(checkpoint).await?.is_some() {
                return Ok(true);
            }
            self.held = held;
            if let (Some(now), Some(entry)) = (self.journal.get_mut(id), entry) {
                *now = entry;
            }
        }
        self.reload_signals().await?;
        Ok(false)
    }

    async fn reload_signals(&mut self) -> Result<(), Halt> {
        let db = &self.engine.db;
        let looked = async {
            let mut session = db.drives.session().await?;
            // The counter first: a signal that lands between the two reads only makes the next rest look again.
            let run = sqlx::query!("select signals, request from engine.run where id = $1", self.run)
                .fetch_one(&mut *session)
                .await?;
            let mut kept = Kept::load(&mut session, &[self.run]).await?;
            session.commit().await?;
            Ok((run.signals, run.request, kept.remove(&self.run).unwrap_or_default()))
        };
        let (signals, request, kept) = db.in_time(looked).await.map_err(|_: sqlx::Error| Halt(Stop::Lost))?;
        (self.signals_seen, self.signals_known) = (signals, signals);
        // It may have been a cancel that the pivot had to heed.
        self.reins.learn(request.as_deref());
        self.kept = kept;
        Ok(())
    }
}
