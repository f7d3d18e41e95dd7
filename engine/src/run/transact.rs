//! An effect in our own database, committed together with its journal row: exactly once.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;
use tokio::time::timeout;
use tracing::Instrument;

use super::{Run, decode, step_id};
use crate::alone::{self, Alone, Together};
use crate::checkpoint::{Entries, Fate};
use crate::committer::Verdict;
use crate::core::{Core, Found};
use crate::event::{Event, Intend, Settle, Tried};
use crate::failpoint::Strike;
use crate::fault::{Fault, Halt, Stop};
use crate::journal::{Entry, StepId};
use crate::payload;
use crate::retry::Retry;
use crate::settings::LONGEST_EFFECT;
use crate::state::{Op, StepState};
use crate::trace;

impl<E: Send + Sync + 'static> Run<E> {
    /// The closure may run more than once and touches nothing but the connection it is given.
    pub async fn transact<T, F>(&mut self, name: &'static str, effect: F) -> Result<T, Halt>
    where
        T: Serialize + DeserializeOwned + Send,
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + Sync,
    {
        self.transact_for(name, "", effect).await
    }

    /// As `transact`, where the same effect occurs more than once: `key` tells the occurrences apart.
    pub async fn transact_for<T, F>(
        &mut self,
        name: &'static str,
        key: impl Display,
        effect: F,
    ) -> Result<T, Halt>
    where
        T: Serialize + DeserializeOwned + Send,
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + Sync,
    {
        let id = step_id(name, key);
        let hash = payload::hash("transact");
        match self.core.look(&id, &hash).await? {
            Found::Answered(output) => return decode(&mut self.core, &id, &output).await,
            Found::New => self.core.open(&id, Op::Transact, false, hash, None),
            Found::Open => self.count_try(&id),
        }
        loop {
            let started = self.core.clock.now();
            let span = trace::step(&id, self.core.journal.get(&id).map_or(1, |e| e.attempt), false);
            match self.try_transact(&id, started, &effect).instrument(span.clone()).await? {
                Ok(output) => return decode(&mut self.core, &id, &output).await,
                Err(fault) => {
                    trace::failed(&span);
                    let outcome = if matches!(fault, Fault::Retry(_)) { "retry" } else { "terminal" };
                    self.core.failed(&id, started, outcome, &fault, Retry::STANDARD).await?;
                    self.count_try(&id);
                }
            }
        }
    }

    fn count_try(&mut self, id: &StepId) {
        if let Some(entry) = self.core.journal.get_mut(id) {
            entry.attempt += 1;
        }
    }

    /// `Ok(Err(_))` is the effect's own fault; nothing of it was written.
    async fn try_transact<T, F>(
        &mut self,
        id: &StepId,
        started: DateTime<Utc>,
        effect: &F,
    ) -> Result<Result<String, Fault>, Halt>
    where
        T: Serialize + DeserializeOwned + Send,
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + Sync,
    {
        let Some(entry) = self.core.journal.get(id).cloned() else { return Err(Stop::Fenced.into()) };
        self.core.point(id, false, "before-commit")?;
        self.core.point(id, false, "before-effect")?;
        if let Some(Strike::Fail(fault)) = self.core.strike(id, false, "before-effect") {
            return Ok(Err(fault));
        }
        let draft = self.core.draft(Fate::GoOn, None);
        let row = Row { id, entry: &entry, started, core: &self.core, effect };
        let ferries = &self.core.committer.ferries;
        let outcome = match ferries.ride(&self.core, id.name, &draft, &row).await {
            Some(outcome) => outcome,
            None => alone::write(&self.core, &draft, &row).await,
        };
        match outcome {
            Alone::Moved(moved, added) => {
                self.core.point(id, false, "after-commit")?;
                self.core.moved(&moved);
                self.core.tally(id, false, "succeeded", self.core.clock.now() - started);
                let output = added.events.into_iter().find_map(|event| match event {
                    Event::Intend(i) => i.output,
                    Event::Settle(s) => s.output,
                    Event::Tried(_) => None,
                });
                let output = output.unwrap_or_else(|| "null".to_owned());
                if let Some(entry) = self.core.journal.get_mut(id) {
                    (entry.written, entry.state, entry.output) =
                        (true, StepState::Succeeded, Some(output.clone()));
                }
                Ok(Ok(output))
            }
            Alone::Fault(fault) => {
                self.core.restore(draft);
                Ok(Err(fault))
            }
            Alone::Verdict(Verdict::LookAgain) => {
                self.core.restore(draft);
                Err(self.core.heed_cancel().await)
            }
            Alone::Verdict(Verdict::Refused(why)) => Err(self.core.refused(why).await),
            Alone::Verdict(_) => Err(Stop::Fenced.into()),
            Alone::Ended => Err(Stop::Lost.into()),
        }
    }
}

/// The effect with the journal row it becomes.
struct Row<'a, F> {
    id: &'a StepId,
    entry: &'a Entry,
    started: DateTime<Utc>,
    core: &'a Core,
    effect: &'a F,
}

impl<T, F> Together for Row<'_, F>
where
    T: Serialize + Send,
    F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Fault>> + Send + Sync,
{
    fn effect<'c>(&'c self, conn: &'c mut PgConnection) -> BoxFuture<'c, Result<Entries, Fault>> {
        Box::pin(async move {
            let slow =
                || Fault::retry("timed_out", format!("the transaction took longer than {LONGEST_EFFECT:?}"));
            let value = timeout(LONGEST_EFFECT, (self.effect)(conn)).await.map_err(|_elapsed| slow())??;
            // Whatever strikes here takes the transaction with it, and the effect too.
            match self.core.strike(self.id, false, "after-effect") {
                Some(Strike::Fail(fault)) => return Err(fault),
                Some(Strike::Crash) => return Err(Fault::retry("struck", "a test ended the transaction")),
                None => {}
            }
            let settings = &self.core.engine.settings;
            let output = payload::encode(&value, settings.max_input, settings)
                .map_err(|e| e.fault("the transaction's output"))?;
            Ok(self.succeeded(output))
        })
    }
}

impl<F> Row<'_, F> {
    fn succeeded(&self, output: String) -> Entries {
        let (name, key) = (self.id.name.to_owned(), self.id.key.clone());
        let (now, attempt) = (self.core.clock.now(), self.entry.attempt);
        let mut rows = Entries::default();
        rows.tried(Tried {
            name: name.clone(),
            key: key.clone(),
            undo: false,
            attempt,
            outcome: "succeeded",
            error: None,
            started_at: self.started,
            at: now,
        });
        if self.entry.written {
            rows.events.push(Event::Settle(Settle {
                name,
                key,
                state: StepState::Succeeded,
                attempt,
                undo_attempt: 0,
                output: Some(output),
                error: None,
                finished_at: Some(now),
            }));
        } else {
            rows.events.push(Event::Intend(Intend {
                name,
                key,
                pos: self.entry.pos,
                op: Op::Transact,
                state: StepState::Succeeded,
                undoable: false,
                input_hash: self.entry.input_hash.clone(),
                input: None,
                output: Some(output),
                error: None,
                deadline_at: None,
                started_at: self.started,
                finished_at: Some(now),
            }));
        }
        rows
    }
}
