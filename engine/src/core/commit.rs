//! From what is held to what is committed, and what a drive learns from it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use super::Core;
use crate::checkpoint::{Checkpoint, Fate, Moved};
use crate::committer::Verdict;
use crate::fault::{Halt, Stop};
use crate::journal::StepId;
use crate::payload;
use crate::state::{Cause, RunState};
use crate::supersede;

impl Core {
    /// Commits what is held and goes on; the step named runs at most `timeout` before it counts as lost.
    pub(crate) async fn go_on(
        &mut self,
        id: &StepId,
        undo: bool,
        timeout: Option<Duration>,
    ) -> Result<(), Halt> {
        let deadline = timeout.map(|t| self.clock.after(t));
        self.point(id, undo, "before-commit")?;
        self.checkpoint(Fate::GoOn, deadline).await?;
        self.point(id, undo, "after-commit")
    }

    pub(super) async fn checkpoint(
        &mut self,
        fate: Fate,
        deadline_at: Option<DateTime<Utc>>,
    ) -> Result<(), Halt> {
        let checkpoint = self.draft(fate, deadline_at);
        let held = checkpoint.heeds_cancel.then(|| checkpoint.entries.clone());
        match (self.submit(checkpoint).await?, held) {
            (Some(_), _) => Ok(()),
            (None, Some(held)) => {
                self.held = held;
                Err(self.heed_cancel().await)
            }
            // Only what watches signals or requests can be told to look again.
            (None, None) => Err(Stop::Fenced.into()),
        }
    }

    pub(crate) fn draft(&mut self, fate: Fate, deadline_at: Option<DateTime<Utc>>) -> Checkpoint {
        Checkpoint {
            run: self.run,
            epoch: self.epoch,
            seq: self.seq,
            token: Uuid::new_v4(),
            fate,
            seen: None,
            // What commits the pivot is the last chance to obey.
            heeds_cancel: self.pivot_due && !self.deaf_to_cancel(),
            pivot: self.pivot_due,
            deadline_at,
            job: self.job.clone(),
            correlation_id: Arc::clone(&self.correlation_id),
            trace_id: self.trace_id.clone(),
            entries: std::mem::take(&mut self.held),
        }
    }

    /// Takes back what a draft carried off, because it was not written.
    pub(crate) fn restore(&mut self, draft: Checkpoint) {
        self.held = draft.entries;
    }

    pub(super) async fn submit(&mut self, checkpoint: Checkpoint) -> Result<Option<Moved>, Halt> {
        let ended = match &checkpoint.fate {
            Fate::Finish { state, .. } => Some(*state),
            _ => None,
        };
        let rests = ended.is_some() || matches!(&checkpoint.fate, Fate::Rest(_));
        match self.write(checkpoint).await {
            Some(Verdict::Moved(moved)) => {
                self.moved(&moved);
                if let Some(state) = ended {
                    let now = self.clock.now();
                    let took = now - self.journal.began_at().unwrap_or(now);
                    self.engine.stats.runs_finished.fetch_add(1, Relaxed);
                    self.engine.stats.tallies.ended(self.kind.name, state, took);
                }
                if rests {
                    self.engine.rested(self.run);
                }
                Ok(Some(moved))
            }
            Some(Verdict::LookAgain) => Ok(None),
            Some(Verdict::Fenced) => Err(Stop::Fenced.into()),
            Some(Verdict::Refused(why)) => Err(self.refused(why).await),
            None => Err(Stop::Lost.into()),
        }
    }

    /// In the company of others, unless somebody waits for the run or its target and must hear of this.
    async fn write(&self, checkpoint: Checkpoint) -> Option<Verdict> {
        let others_care = match &checkpoint.fate {
            Fate::Finish { .. } => self.target.is_some() || self.parent.is_some(),
            Fate::Rest(rest) => {
                rest.state == RunState::Stuck && (self.target.is_some() || self.parent.is_some())
            }
            _ => false,
        };
        if others_care {
            supersede::end(self, checkpoint).await
        } else {
            self.committer.write(checkpoint).await
        }
    }

    pub(crate) fn moved(&mut self, moved: &Moved) {
        self.seq += 1;
        self.signals_known = moved.signals;
        self.pivoted |= std::mem::take(&mut self.pivot_due);
        self.reins.learn(moved.request.as_deref());
        if moved.request.is_some() {
            // Should this checkpoint have released the run, somebody must act on the request for it.
            self.engine.admission.nudge.notify_one();
        }
        self.engine.changed(self.run);
    }

    /// The database will not take this journal row, now or later: park the run without it, and without the pivot that it may
    /// have brought.
    pub(crate) async fn refused(&mut self, why: String) -> Halt {
        let problem = "the database refused the checkpoint";
        let rest =
            self.parked(Cause::CrashLoop, json!({"problem": problem, "error": payload::clip(&why, 1024)}));
        self.pivot_due = false;
        let checkpoint = self.draft(Fate::Rest(Box::new(rest)), None);
        match self.write(checkpoint).await {
            Some(Verdict::Moved(_)) => {
                self.engine.rested(self.run);
                Stop::Rested.into()
            }
            _ => Stop::Fenced.into(),
        }
    }
}
