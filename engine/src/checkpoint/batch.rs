//! Many checkpoints in one statement: the batch turned on its side, one array per parameter.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Checkpoint, Fate, Moved};
use crate::state::{Cause, RunState};

/// The batch turned on its side, one array per parameter of `queries/checkpoint.sql`.
#[derive(Default)]
pub(super) struct Columns<'a> {
    id: Vec<Uuid>,
    epoch: Vec<i64>,
    seq: Vec<i32>,
    token: Vec<Uuid>,
    state: Vec<Option<&'a str>>,
    turned: Vec<bool>,
    release: Vec<bool>,
    wake_at: Vec<Option<DateTime<Utc>>>,
    cause: Vec<Option<&'a str>>,
    detail: Vec<Option<&'a str>>,
    seen: Vec<Option<i32>>,
    pivot: Vec<bool>,
    output: Vec<Option<&'a str>>,
    error: Vec<Option<&'a str>>,
    step_deadline: Vec<Option<DateTime<Utc>>>,
    finish: Vec<bool>,
    clears_request: Vec<bool>,
    progress: Vec<bool>,
    s_run: Vec<Uuid>,
    s_name: Vec<&'a str>,
    s_key: Vec<&'a str>,
    s_state: Vec<&'a str>,
    s_attempt: Vec<i32>,
    s_undo_attempt: Vec<i32>,
    s_output: Vec<Option<&'a str>>,
    s_error: Vec<Option<&'a str>>,
    s_finished: Vec<Option<DateTime<Utc>>>,
    i_run: Vec<Uuid>,
    i_name: Vec<&'a str>,
    i_key: Vec<&'a str>,
    i_seq: Vec<i32>,
    i_op: Vec<&'a str>,
    i_state: Vec<&'a str>,
    i_undoable: Vec<bool>,
    i_hash: Vec<&'a [u8]>,
    i_input: Vec<Option<&'a str>>,
    i_output: Vec<Option<&'a str>>,
    i_error: Vec<Option<&'a str>>,
    i_deadline: Vec<Option<DateTime<Utc>>>,
    i_started: Vec<DateTime<Utc>>,
    i_finished: Vec<Option<DateTime<Utc>>>,
    i_correlation: Vec<&'a str>,
    t_run: Vec<Uuid>,
    t_name: Vec<&'a str>,
    t_key: Vec<&'a str>,
    t_undo: Vec<bool>,
    t_attempt: Vec<i32>,
    t_outcome: Vec<&'a str>,
    t_error: Vec<Option<&'a str>>,
    t_started: Vec<DateTime<Utc>>,
    t_at: Vec<DateTime<Utc>>,
    t_epoch: Vec<i64>,
    t_correlation: Vec<&'a str>,
    t_trace: Vec<Option<&'a str>>,
    g_run: Vec<Uuid>,
    g_name: Vec<&'a str>,
    g_dedupe: Vec<&'a str>,
    jobs: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(batch: &[&'a Checkpoint]) -> Columns<'a> {
        let mut columns = Columns::default();
        for checkpoint in batch {
            columns.push(checkpoint);
        }
        columns
    }

    /// All of them go on.
    pub(super) async fn advance(
        &self,
        conn: &mut PgConnection,
        owner: Uuid,
    ) -> sqlx::Result<HashMap<Uuid, Moved>> {
        let c = self;
        let rows = sqlx::query_file!(
            "queries/advance.sql",
            &c.id,
            &c.epoch,
            &c.seq,
            &c.token,
            &c.pivot,
            &c.step_deadline as &[Option<DateTime<Utc>>],
            owner,
            &c.s_run,
            &c.s_name as &[&str],
            &c.s_key as &[&str],
            &c.s_state as &[&str],
            &c.s_attempt,
            &c.s_undo_attempt,
            &c.s_output as &[Option<&str>],
            &c.s_error as &[Option<&str>],
            &c.s_finished as &[Option<DateTime<Utc>>],
            &c.i_run,
            &c.i_name as &[&str],
            &c.i_key as &[&str],
            &c.i_seq,
            &c.i_op as &[&str],
            &c.i_state as &[&str],
            &c.i_undoable,
            &c.i_hash as &[&[u8]],
            &c.i_input as &[Option<&str>],
            &c.i_output as &[Option<&str>],
            &c.i_error as &[Option<&str>],
            &c.i_deadline as &[Option<DateTime<Utc>>],
            &c.i_started,
            &c.i_finished as &[Option<DateTime<Utc>>],
            &c.i_correlation as &[&str],
            &c.t_run,
            &c.t_name as &[&str],
            &c.t_key as &[&str],
            &c.t_undo,
            &c.t_attempt,
            &c.t_outcome as &[&str],
            &c.t_error as &[Option<&str>],
            &c.t_started,
            &c.t_at,
            &c.t_epoch,
            &c.t_correlation as &[&str],
            &c.t_trace as &[Option<&str>],
            &c.progress,
        )
        .fetch_all(conn)
        .await?;
        Ok(rows.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
    }

    /// Some turn back, rest or end.
    pub(super) async fn settle(
        &self,
        conn: &mut PgConnection,
        owner: Uuid,
    ) -> sqlx::Result<HashMap<Uuid, Moved>> {
        let c = self;
        let rows = sqlx::query_file!(
            "queries/checkpoint.sql",
            &c.id,
            &c.epoch,
            &c.seq,
            &c.token,
            &c.state as &[Option<&str>],
            &c.turned,
            &c.release,
            &c.wake_at as &[Option<DateTime<Utc>>],
            &c.cause as &[Option<&str>],
            &c.detail as &[Option<&str>],
            &c.seen as &[Option<i32>],
            &c.pivot,
            &c.output as &[Option<&str>],
            &c.error as &[Option<&str>],
            &c.step_deadline as &[Option<DateTime<Utc>>],
            &c.finish,
            &c.clears_request,
            owner,
            &c.s_run,
            &c.s_name as &[&str],
            &c.s_key as &[&str],
            &c.s_state as &[&str],
            &c.s_attempt,
            &c.s_undo_attempt,
            &c.s_output as &[Option<&str>],
            &c.s_error as &[Option<&str>],
            &c.s_finished as &[Option<DateTime<Utc>>],
            &c.i_run,
            &c.i_name as &[&str],
            &c.i_key as &[&str],
            &c.i_seq,
            &c.i_op as &[&str],
            &c.i_state as &[&str],
            &c.i_undoable,
            &c.i_hash as &[&[u8]],
            &c.i_input as &[Option<&str>],
            &c.i_output as &[Option<&str>],
            &c.i_error as &[Option<&str>],
            &c.i_deadline as &[Option<DateTime<Utc>>],
            &c.i_started,
            &c.i_finished as &[Option<DateTime<Utc>>],
            &c.i_correlation as &[&str],
            &c.t_run,
            &c.t_name as &[&str],
            &c.t_key as &[&str],
            &c.t_undo,
            &c.t_attempt,
            &c.t_outcome as &[&str],
            &c.t_error as &[Option<&str>],
            &c.t_started,
            &c.t_at,
            &c.t_epoch,
            &c.t_correlation as &[&str],
            &c.t_trace as &[Option<&str>],
            &c.g_run,
            &c.g_name as &[&str],
            &c.g_dedupe as &[&str],
            &c.jobs as &[&str],
            &c.progress,
        )
        .fetch_all(conn)
        .await?;
        Ok(rows.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
    }

    fn push(&mut self, c: &'a Checkpoint) {
        self.push_run(c);
        for s in &c.entries.settles {
            self.s_run.push(c.run);
            self.s_name.push(&s.name);
            self.s_key.push(&s.key);
            self.s_state.push(s.state.as_str());
            self.s_attempt.push(s.attempt);
            self.s_undo_attempt.push(s.undo_attempt);
            self.s_output.push(s.output.as_deref());
            self.s_error.push(s.error.as_deref());
            self.s_finished.push(s.finished_at);
        }
        for i in &c.entries.intends {
            self.i_run.push(c.run);
            self.i_name.push(&i.name);
            self.i_key.push(&i.key);
            self.i_seq.push(i.seq);
            self.i_op.push(i.op.as_str());
            self.i_state.push(i.state.as_str());
            self.i_undoable.push(i.undoable);
            self.i_hash.push(&i.input_hash);
            self.i_input.push(i.input.as_deref());
            self.i_output.push(i.output.as_deref());
            self.i_error.push(i.error.as_deref());
            self.i_deadline.push(i.deadline_at);
            self.i_started.push(i.started_at);
            self.i_finished.push(i.finished_at);
            self.i_correlation.push(&c.correlation_id);
        }
        for t in &c.entries.tried {
            self.t_run.push(c.run);
            self.t_name.push(&t.name);
            self.t_key.push(&t.key);
            self.t_undo.push(t.undo);
            self.t_attempt.push(t.attempt);
            self.t_outcome.push(t.outcome);
            self.t_error.push(t.error.as_deref());
            self.t_started.push(t.started_at);
            self.t_at.push(t.at);
            self.t_epoch.push(c.epoch);
            self.t_correlation.push(&c.correlation_id);
            self.t_trace.push(c.trace_id.as_deref());
        }
        for (name, dedupe) in &c.entries.taken {
            self.g_run.push(c.run);
            self.g_name.push(name);
            self.g_dedupe.push(dedupe);
        }
    }

    fn push_run(&mut self, c: &'a Checkpoint) {
        let mut rest = None;
        let (state, turned, output, error) = match &c.fate {
            Fate::GoOn => (None, false, None, None),
            Fate::TurnBack { error } => (Some(RunState::Compensating), true, None, error.as_deref()),
            Fate::Rest(r) => {
                rest = Some(r);
                (Some(r.state), false, None, r.error.as_deref())
            }
            Fate::Finish { state, output, error } => {
                (Some(*state), false, output.as_deref(), error.as_deref())
            }
        };
        self.id.push(c.run);
        self.epoch.push(c.epoch);
        self.seq.push(c.seq);
        self.token.push(c.token);
        self.state.push(state.map(RunState::as_str));
        self.turned.push(turned);
        self.release.push(matches!(c.fate, Fate::Rest(_) | Fate::Finish { .. }));
        self.wake_at.push(rest.and_then(|r| r.wake_at));
        self.cause.push(rest.and_then(|r| r.cause).map(Cause::as_str));
        self.detail.push(rest.and_then(|r| r.detail.as_deref()));
        self.seen.push(rest.and_then(|r| r.seen));
        self.pivot.push(c.pivot);
        self.output.push(output);
        self.error.push(error);
        self.step_deadline.push(c.step_deadline);
        self.progress.push(c.is_progress());
        self.finish.push(matches!(c.fate, Fate::Finish { .. }));
        if matches!(c.fate, Fate::Rest(_) | Fate::Finish { .. }) {
            self.jobs.extend(c.job.as_deref());
        }
        self.clears_request.push(rest.is_some_and(|r| r.clears_request));
    }
}
