//! What a workflow function can do: `step`, `transact`, `sleep`, `wait_for`, `child`, `pivot`. Each is journaled by
//! name; each either answers from the journal, or commits its intent before it acts.

mod child;
mod step;
mod transact;
mod wait;

pub(crate) use child::{Ended, start_key as child_start_key};
pub(crate) use step::panic_message;

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::Span;
use uuid::Uuid;

use crate::core::Core;
use crate::fault::{Fault, Halt};
use crate::journal::StepId;
use crate::payload;
use crate::unwind::Noted;

/// One drive of one run.
pub struct Run<E> {
    pub(crate) core: Core,
    pub(crate) env: Arc<E>,
    /// What may have to be undone, in the order it was begun.
    pub(crate) noted: Vec<Noted<E>>,
    /// What the workflow says of what it acts on.
    pub(crate) about: Span,
}

impl<E: Send + Sync + 'static> Run<E> {
    pub(crate) fn new(core: Core, env: Arc<E>) -> Run<E> {
        Run { core, env, noted: Vec::new(), about: Span::none() }
    }

    pub fn id(&self) -> Uuid {
        self.core.run
    }

    pub fn project_id(&self) -> Uuid {
        self.core.project_id
    }

    pub fn correlation_id(&self) -> &str {
        &self.core.correlation_id
    }

    /// The span that started the run, as W3C names it.
    pub fn traceparent(&self) -> Option<&str> {
        self.core.traceparent.as_deref()
    }

    /// The point of no return. From the next step on nothing unwinds: cancel is refused, and exhausted retries pause
    /// with slow automatic retries.
    pub fn pivot(&mut self) {
        self.core.pivot();
    }

    /// What the run leaves behind for its parent and its readers.
    pub async fn output(&mut self, value: &impl Serialize) -> Result<(), Halt> {
        let settings = &self.core.engine.settings;
        match payload::encode(value, settings.max_input, settings) {
            Ok(text) => {
                self.core.output = Some(text);
                Ok(())
            }
            Err(error) => Err(self.fail(&error.fault("the run's output")).await),
        }
    }

    /// Ends the run here, undoing what was done. Use it as `return Err(run.fail(&fault).await)`.
    pub async fn fail(&mut self, fault: &Fault) -> Halt {
        self.core.turn_back(fault.reason()).await
    }
}

fn step_id(name: &'static str, key: impl Display) -> StepId {
    StepId { name, key: key.to_string() }
}

/// A journaled output that no longer fits its type means the code changed under the run.
async fn decode<T: DeserializeOwned>(core: &mut Core, id: &StepId, text: &str) -> Result<T, Halt> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => {
            let problem = format!("the journaled output no longer fits: {error}");
            let detail = serde_json::json!({"step": id.to_string(), "problem": problem});
            Err(core.quarantine(crate::state::Cause::Nondeterministic, detail).await)
        }
    }
}
