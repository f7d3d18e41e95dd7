//! A run started by a run. The child begins in the transaction in which its parent comes to rest; the child's last
//! commit signals the parent; undoing the step means cancelling the child and waiting for its end.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{Run, decode, step_id};
use crate::alone::{self, Alone, Together};
use crate::checkpoint::{Entries, Fate, Rest};
use crate::committer::Verdict;
use crate::core::Found;
use crate::engine::Inner;
use crate::failpoint::Strike;
use crate::fault::{Fault, Halt, Reason, Stop};
use crate::journal::StepId;
use crate::payload;
use crate::registry::Workflow;
use crate::start::{self, NewRun};
use crate::state::{Cause, Op, RunState, StepState};
use crate::unwind::Noted;

/// What a child tells its parent when it ends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) state: RunState,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<Reason>,
}

/// A child's output, or how and why it ended without one.
type End = Result<Value, (RunState, Reason)>;

impl<E: Send + Sync + 'static> Run<E> {
    /// Runs another workflow to its end and gives its output. A child that does not succeed fails its parent.
    pub async fn child<W: Workflow>(&mut self, workflow: &W) -> Result<Value, Halt> {
        self.child_for("", workflow).await
    }

    pub async fn child_for<W: Workflow>(&mut self, key: impl Display, workflow: &W) -> Result<Value, Halt> {
        let id = step_id(W::NAME, key);
        match self.child_to_its_end(&id, workflow).await? {
            Ok(output) => Ok(output),
            Err((state, why)) => {
                let message = format!("the child run {id} ended {state}: {}", why.message);
                Err(self.fail(&Fault::terminal("child_failed", message)).await)
            }
        }
    }

    /// The same of a child that may fail: its parent learns why, and goes on.
    pub async fn try_child<W: Workflow>(&mut self, workflow: &W) -> Result<Result<Value, Reason>, Halt> {
        let ended = self.child_to_its_end(&step_id(W::NAME, ""), workflow).await?;
        Ok(ended.map_err(|(_, why)| why))
    }

    async fn child_to_its_end<W: Workflow>(&mut self, id: &StepId, workflow: &W) -> Result<End, Halt> {
        let settings = &self.core.engine.settings;
        let input = match payload::encode(workflow, settings.max_input, settings) {
            Ok(input) => input,
            Err(error) => return Err(self.fail(&error.fault("the child's input")).await),
        };
        let hash = payload::hash(&input);
        if self.core.journal.get(id).is_some() {
            self.noted.push(Noted::Child { id: id.clone() });
        }
        loop {
            match self.core.look(id, &hash).await? {
                Found::Answered(ended) => return self.child_ended(id, &ended).await,
                Found::New => {
                    self.core.open(id, Op::Child, true, hash.clone(), Some(input.clone()));
                    self.noted.push(Noted::Child { id: id.clone() });
                    return Err(self.begin_child::<W>(id, &input).await);
                }
                Found::Open => {}
            }
            if let Some(ended) = self.core.take_signal(&id.to_string()) {
                self.core.note(id, StepState::Succeeded, Some(ended.clone()), None);
                return self.child_ended(id, &ended).await;
            }
            let rest = Rest {
                detail: Some(self.core.detail(&json!({"child": id.to_string()}))),
                ..Rest::new(RunState::Waiting, Some(Cause::WaitingForRun))
            };
            self.core.rest_unless_signalled(rest, id).await?;
        }
    }

    async fn child_ended(&mut self, id: &StepId, ended: &str) -> Result<End, Halt> {
        let ended: Ended = decode(&mut self.core, id, ended).await?;
        if ended.state == RunState::Succeeded {
            return Ok(Ok(ended.output.unwrap_or(Value::Null)));
        }
        let unknown = || Reason { code: "unknown".to_owned(), message: "no reason given".to_owned() };
        Ok(Err((ended.state, ended.error.unwrap_or_else(unknown))))
    }

    /// The child and the parent's rest are one commit, so there is never one without the other.
    async fn begin_child<W: Workflow>(&mut self, id: &StepId, input: &str) -> Halt {
        self.note_waiting(id);
        let mut rest = Rest::new(RunState::Waiting, Some(Cause::WaitingForRun));
        rest.detail = Some(self.core.detail(&json!({"child": id.to_string()})));
        for place in ["before-commit", "before-effect"] {
            if let Err(halt) = self.core.point(id, false, place) {
                return halt;
            }
        }
        if let Some(Strike::Fail(fault)) = self.core.strike(id, false, "before-effect") {
            return self.not_begun(id, &fault).await;
        }
        let child = NewRun {
            kind: W::NAME.to_owned(),
            version: W::VERSION,
            input: input.to_owned(),
            org_id: self.core.org_id,
            project_id: self.core.project_id,
            correlation_id: self.core.correlation_id.to_string(),
            traceparent: self.core.traceparent.as_deref().map(str::to_owned),
            start_key: Some(start_key(self.core.run, id)),
            parent: Some((self.core.run, id.to_string())),
            ..NewRun::default()
        };
        let start = StartChild { engine: Arc::clone(&self.core.engine), child };
        loop {
            let draft = self.core.draft(Fate::Rest(Box::new(rest.clone())), None);
            match alone::write(&self.core, &draft, &start).await {
                Alone::Moved(moved, _) => {
                    self.core.moved(&moved);
                    self.core.engine.rested(self.core.run);
                    self.core.engine.bell.ring();
                    return Stop::Rested.into();
                }
                Alone::Fault(Fault::Retry(_)) if !self.core.reins.ended() => {
                    // The database was away for a moment; nothing was written.
                    self.core.restore(draft);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Alone::Fault(fault) => {
                    self.core.restore(draft);
                    return self.not_begun(id, &fault).await;
                }
                Alone::Verdict(Verdict::LookAgain) => {
                    self.core.restore(draft);
                    return self.core.heed_cancel().await;
                }
                Alone::Verdict(Verdict::Refused(why)) => return self.core.refused(why).await,
                Alone::Verdict(_) => return Stop::Fenced.into(),
                Alone::Ended => return Stop::Lost.into(),
            }
        }
    }
}

impl<E: Send + Sync + 'static> Run<E> {
    /// A journal that says the run waits for its child would have it wait for ever, should it be tried again.
    async fn not_begun(&mut self, id: &StepId, fault: &Fault) -> Halt {
        self.core.unheld(id);
        self.core.turn_back(fault.reason()).await
    }
}

struct StartChild {
    engine: Arc<Inner>,
    child: NewRun,
}

impl Together for StartChild {
    fn effect<'c>(&'c self, conn: &'c mut PgConnection) -> BoxFuture<'c, Result<Entries, Fault>> {
        Box::pin(async move {
            self.engine.db.in_time(start::insert(&self.engine, conn, &self.child)).await?;
            Ok(Entries::default())
        })
    }
}

pub(crate) fn start_key(parent: uuid::Uuid, id: &StepId) -> String {
    format!("child/{parent}/{id}")
}
