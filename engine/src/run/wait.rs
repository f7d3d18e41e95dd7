//! Waiting without holding a worker: the run rests in the database until a signal, or the database's clock, wakes it.

use std::fmt::Display;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Run, decode, step_id};
use crate::checkpoint::Rest;
use crate::core::Found;
use crate::failpoint::Strike;
use crate::fault::{Fault, Halt, Stop};
use crate::journal::StepId;
use crate::payload;
use crate::state::{Cause, Op, RunState, StepState};

/// Deadline or signal: whichever is journaled first stands.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Signal(Box<RawValue>),
    TimedOut,
}

/// The outcome as it is journaled.
const TIMED_OUT: &str = r#""timed_out""#;

impl<E: Send + Sync + 'static> Run<E> {
    /// Waits for an outside signal; none within the time is a terminal fault.
    pub async fn wait_for<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        within: Duration,
    ) -> Result<T, Halt> {
        self.wait_for_key(name, "", within).await
    }

    pub async fn wait_for_key<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        key: impl Display,
        within: Duration,
    ) -> Result<T, Halt> {
        match self.wait_until(name, key, within).await? {
            Some(signal) => Ok(signal),
            None => {
                let message = format!("no signal {name:?} within {within:?}");
                Err(self.fail(&Fault::terminal("deadline_passed", message)).await)
            }
        }
    }

    /// As `wait_for_key`, but silence is an answer.
    pub async fn wait_until<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        key: impl Display,
        within: Duration,
    ) -> Result<Option<T>, Halt> {
        let id = step_id(name, key);
        let outcome = self.wait(&id, within).await?;
        match decode(&mut self.core, &id, &outcome).await? {
            Outcome::Signal(payload) => decode(&mut self.core, &id, payload.get()).await.map(Some),
            Outcome::TimedOut => Ok(None),
        }
    }

    async fn wait(&mut self, id: &StepId, within: Duration) -> Result<String, Halt> {
        let hash = payload::hash("wait");
        loop {
            match self.core.look(id, &hash).await? {
                Found::Answered(outcome) => return Ok(outcome),
                Found::New => self.begin_waiting(id, Op::Wait, within, hash.clone()),
                Found::Open => {}
            }
            // A test that fails a wait lets its deadline pass.
            let struck = match self.core.strike(id, false, "before-wait") {
                Some(Strike::Crash) => return Err(Stop::Crashed.into()),
                struck => struck.is_some(),
            };
            if !struck && let Some(payload) = self.core.take_signal(&id.to_string()) {
                let outcome = format!(r#"{{"signal":{payload}}}"#);
                self.core.note(id, StepState::Succeeded, Some(outcome.clone()), None);
                return Ok(outcome);
            }
            let deadline = self.core.journal.get(id).and_then(|e| e.deadline_at);
            if struck || deadline.is_some_and(|at| at <= self.core.clock.now()) {
                if self.core.give_up_unless_signalled(id, TIMED_OUT).await? {
                    return Ok(TIMED_OUT.to_owned());
                }
                continue;
            }
            self.note_waiting(id);
            let rest = Rest {
                wake_at: deadline,
                detail: Some(self.core.detail(&json!({"signal": id.to_string()}))),
                ..Rest::new(RunState::Waiting, Some(Cause::WaitingSignal))
            };
            self.core.rest_unless_signalled(rest, id).await?;
            // A signal came in between, so nothing was written: the row is still to be inserted.
            self.unnote_waiting(id);
        }
    }

    /// Sleeps by the database's clock.
    pub async fn sleep(&mut self, name: &'static str, time: Duration) -> Result<(), Halt> {
        let id = step_id(name, "");
        let hash = payload::hash("sleep");
        match self.core.look(&id, &hash).await? {
            Found::Answered(_) => return Ok(()),
            Found::New => self.begin_waiting(&id, Op::Sleep, time, hash),
            Found::Open => {}
        }
        let wake_at = self.core.journal.get(&id).and_then(|e| e.deadline_at);
        if wake_at.is_none_or(|at| at <= self.core.clock.now()) {
            self.core.note(&id, StepState::Succeeded, Some("null".into()), None);
            return Ok(());
        }
        self.note_waiting(&id);
        let rest = Rest { wake_at, ..Rest::new(RunState::Waiting, Some(Cause::WaitingTimer)) };
        Err(self.core.rest(rest).await)
    }

    pub(super) fn begin_waiting(&mut self, id: &StepId, op: Op, time: Duration, hash: Vec<u8>) {
        self.core.open(id, op, false, hash, None);
        let deadline = self.core.clock.after(time);
        if let Some(entry) = self.core.journal.get_mut(id) {
            entry.deadline_at = Some(deadline);
        }
    }

    /// Journals the wait the first time; a later rest leaves the row as it is.
    pub(super) fn note_waiting(&mut self, id: &StepId) {
        if self.core.journal.get(id).is_some_and(|e| !e.written) {
            self.core.note(id, StepState::Waiting, None, None);
        }
    }

    fn unnote_waiting(&mut self, id: &StepId) {
        self.core.unheld(id);
    }
}
