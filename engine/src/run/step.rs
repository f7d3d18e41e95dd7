//! Running one activity: intent first, then the effect under a timeout, then its result held for the next checkpoint.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use chrono::{DateTime, Utc};
use futures::FutureExt;
use tracing::Instrument;

use super::{Run, decode, step_id};
use crate::activity::{Activity, Call, Observed, idempotency_key};
use crate::core::Found;
use crate::failpoint::Strike;
use crate::fault::{Fault, Halt};
use crate::journal::StepId;
use crate::payload;
use crate::state::{Op, StepState};
use crate::trace;
use crate::unwind::Noted;

/// How one try ended.
enum Try<T> {
    Done(T, &'static str),
    Failed(Fault, &'static str),
    Interrupted,
}

impl<E: Send + Sync + 'static> Run<E> {
    pub async fn step<A: Activity<Env = E>>(&mut self, activity: A) -> Result<A::Output, Halt> {
        self.step_for("", activity).await
    }

    /// As `step`, where the same activity occurs more than once: `key` tells the occurrences apart.
    pub async fn step_for<A: Activity<Env = E>>(
        &mut self,
        key: impl Display,
        activity: A,
    ) -> Result<A::Output, Halt> {
        let id = step_id(A::NAME, key);
        let settings = &self.core.engine.settings;
        let input = match payload::encode(&activity, settings.max_input, settings) {
            Ok(input) => input,
            Err(error) => return Err(self.fail(&error.fault("the step's input")).await),
        };
        let hash = payload::hash(&input);
        // Whoever starts a run says that its first step will be taken. Turned back before that, it is undone all the same.
        if A::UNDO && self.core.turned_back_unbegun() {
            self.core.open(&id, Op::Activity, true, hash.clone(), Some(input.clone()));
        }
        // Noted before anything else: a step whose outcome is unknown is undone too. One that was begun with another input is
        // not undone with this one.
        if A::UNDO && self.core.journal.get(&id).is_some_and(|entry| entry.input_hash == hash) {
            self.noted.push(Noted::activity(id.clone(), activity.clone()));
        }
        match self.core.look(&id, &hash).await? {
            Found::Answered(output) => return decode(&mut self.core, &id, &output).await,
            Found::New => {
                self.core.open(&id, Op::Activity, A::UNDO, hash, Some(input));
                if A::UNDO {
                    self.noted.push(Noted::activity(id.clone(), activity.clone()));
                }
                self.core.note(&id, StepState::Running, None, None);
            }
            Found::Open => self.next_try(&id),
        }
        loop {
            self.core.go_on(&id, false, Some(A::TIMEOUT)).await?;
            let started = self.core.clock.now();
            match self.try_once(&id, &activity).await? {
                Try::Done(output, outcome) => return self.done(&id, started, output, outcome).await,
                Try::Failed(fault, outcome) => {
                    self.core.failed(&id, started, outcome, &fault, A::RETRY).await?;
                    self.next_try(&id);
                }
                Try::Interrupted => {
                    self.core.interrupted(&id, started);
                    self.core.obey().await?;
                    self.next_try(&id);
                }
            }
        }
    }

    /// Counts a new try. If the last one never reported, its driver died with it.
    fn next_try(&mut self, id: &StepId) {
        let Some(entry) = self.core.journal.get_mut(id) else { return };
        let (was, attempt, started) = (entry.state, entry.attempt, entry.started_at);
        entry.attempt += 1;
        if was == StepState::Running {
            self.core.tried(id, false, attempt, started, "lost", None);
        }
        self.core.note(id, StepState::Running, None, None);
    }

    async fn try_once<A: Activity<Env = E>>(
        &mut self,
        id: &StepId,
        activity: &A,
    ) -> Result<Try<A::Output>, Halt> {
        let attempt = self.core.journal.get(id).map_or(1, |e| e.attempt);
        let call = self.call(id, attempt, false);
        let env = Arc::clone(&self.env);
        let look_first = attempt > 1;
        let body = async {
            if look_first && let Observed::Done(output) = activity.observe(&env, &call).await? {
                return Ok((output, "found_done"));
            }
            activity.run(&env, &call).await.map(|output| (output, "succeeded"))
        };
        let span = trace::step(id, attempt, false);
        self.core.point(id, false, "before-effect")?;
        if let Some(Strike::Fail(fault)) = self.core.strike(id, false, "before-effect") {
            return Ok(failed(fault));
        }
        let guarded =
            AssertUnwindSafe(tokio::time::timeout(A::TIMEOUT, body.instrument(span.clone()))).catch_unwind();
        let ended = tokio::select! {
            ended = guarded => ended,
            () = self.core.reins.pulled(self.core.deaf_to_cancel()) => return Ok(Try::Interrupted),
        };
        self.core.point(id, false, "after-effect")?;
        if let Some(Strike::Fail(fault)) = self.core.strike(id, false, "after-effect") {
            return Ok(failed(fault));
        }
        if !matches!(ended, Ok(Ok(Ok(_)))) {
            trace::failed(&span);
        }
        Ok(match ended {
            Ok(Ok(Ok((output, outcome)))) => Try::Done(output, outcome),
            Ok(Ok(Err(fault))) => failed(fault),
            Ok(Err(_elapsed)) => {
                let message =
                    format!("no answer within {:?}; it may or may not have taken effect", A::TIMEOUT);
                Try::Failed(Fault::retry("timed_out", message), "timed_out")
            }
            Err(panic) => Try::Failed(Fault::retry("panicked", panic_message(&*panic)), "retry"),
        })
    }

    async fn done<T: serde::Serialize>(
        &mut self,
        id: &StepId,
        started: DateTime<Utc>,
        output: T,
        outcome: &'static str,
    ) -> Result<T, Halt> {
        let settings = &self.core.engine.settings;
        match payload::encode(&output, settings.max_input, settings) {
            Ok(text) => {
                let attempt = self.core.journal.get(id).map_or(1, |e| e.attempt);
                self.core.tried(id, false, attempt, started, outcome, None);
                self.core.note(id, StepState::Succeeded, Some(text), None);
                self.core.engine.stats.steps_finished.fetch_add(1, Relaxed);
                Ok(output)
            }
            Err(error) => {
                let fault = error.fault("the step's output");
                self.core.failed(id, started, "terminal", &fault, crate::Retry::NEVER).await?;
                Err(self.fail(&fault).await)
            }
        }
    }

    pub(crate) fn call(&self, id: &StepId, attempt: i32, undo: bool) -> Call {
        Call {
            run: self.core.run,
            epoch: self.core.epoch,
            attempt,
            idempotency_key: idempotency_key(self.core.run, id, undo),
            correlation_id: Arc::clone(&self.core.correlation_id),
            trace_id: self.core.trace_id.clone(),
            traceparent: self.core.traceparent.clone(),
            cancelled: self.core.reins.token(),
        }
    }
}

fn failed<T>(fault: Fault) -> Try<T> {
    let outcome = match fault {
        Fault::Retry(_) => "retry",
        Fault::Terminal(_) => "terminal",
        Fault::NeedsOperator(_) => "needs_operator",
    };
    Try::Failed(fault, outcome)
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the step panicked".to_owned())
}
