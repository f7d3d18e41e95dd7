//! Many checkpoints in one statement: the batch turned on its side, one array per parameter.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Checkpoint, Fate, Moved};
use crate::event;
use crate::state::{Cause, RunState};

/// What every checkpoint writes.
struct Rows<'a> {
    id: Vec<Uuid>,
    epoch: Vec<i64>,
    seq: Vec<i32>,
    token: Vec<Uuid>,
    deadline_at: Vec<Option<DateTime<Utc>>>,
    progress: Vec<bool>,
    correlation_id: Vec<&'a str>,
    trace_id: Vec<Option<&'a str>>,
    events: Vec<String>,
}

impl<'a> Rows<'a> {
    fn of(batch: &[&'a Checkpoint]) -> Rows<'a> {
        Rows {
            id: batch.iter().map(|c| c.run).collect(),
            epoch: batch.iter().map(|c| c.epoch).collect(),
            seq: batch.iter().map(|c| c.seq).collect(),
            token: batch.iter().map(|c| c.token).collect(),
            deadline_at: batch.iter().map(|c| c.deadline_at).collect(),
            progress: batch.iter().map(|c| c.is_progress()).collect(),
            correlation_id: batch.iter().map(|c| &*c.correlation_id).collect(),
            trace_id: batch.iter().map(|c| c.trace_id.as_deref()).collect(),
            events: batch.iter().map(|c| event::to_json(&c.entries.events)).collect(),
        }
    }
}

/// All of them go on.
pub(super) async fn advance(
    conn: &mut PgConnection,
    owner: Uuid,
    batch: &[&Checkpoint],
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let rows = Rows::of(batch);
    let moved = sqlx::query_file!(
        "queries/advance.sql",
        &rows.id,
        &rows.epoch,
        owner,
        &rows.seq,
        &rows.token,
        &rows.deadline_at as &[Option<DateTime<Utc>>],
        &rows.progress,
        &rows.correlation_id as &[&str],
        &rows.trace_id as &[Option<&str>],
        &rows.events,
    )
    .fetch_all(conn)
    .await?;
    Ok(moved.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
}

/// What becomes of the run rows, where more than the journal changes.
#[derive(Default)]
struct Fates<'a> {
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
    finish: Vec<bool>,
    clears_request: Vec<bool>,
    failures: Vec<Option<String>>,
    taken: Vec<Option<String>>,
    job: Vec<Option<&'a str>>,
    heeds_cancel: Vec<bool>,
}

impl<'a> Fates<'a> {
    fn of(batch: &[&'a Checkpoint]) -> Fates<'a> {
        let mut fates = Fates::default();
        for checkpoint in batch {
            fates.push(checkpoint);
        }
        fates
    }

    fn push(&mut self, c: &'a Checkpoint) {
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
        let release = matches!(c.fate, Fate::Rest(_) | Fate::Finish { .. });
        self.state.push(state.map(RunState::as_str));
        self.turned.push(turned);
        self.release.push(release);
        self.wake_at.push(rest.and_then(|r| r.wake_at));
        self.cause.push(rest.and_then(|r| r.cause).map(Cause::as_str));
        self.detail.push(rest.and_then(|r| r.detail.as_deref()));
        self.seen.push(c.seen);
        self.pivot.push(c.pivot);
        self.output.push(output);
        self.error.push(error);
        self.finish.push(matches!(c.fate, Fate::Finish { .. }));
        self.clears_request.push(rest.is_some_and(|r| r.clears_request));
        self.failures.push(event::failures_to_json(&c.entries.failures));
        self.taken.push(event::taken_to_json(&c.entries.taken));
        self.job.push(c.job.as_deref().filter(|_| release));
        self.heeds_cancel.push(c.heeds_cancel);
    }
}

/// Some turn back, rest or end, or have more to tell than their next step.
pub(super) async fn settle(
    conn: &mut PgConnection,
    owner: Uuid,
    batch: &[&Checkpoint],
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let (rows, fates) = (Rows::of(batch), Fates::of(batch));
    let moved = sqlx::query_file!(
        "queries/checkpoint.sql",
        &rows.id,
        &rows.epoch,
        owner,
        &rows.seq,
        &rows.token,
        &rows.deadline_at as &[Option<DateTime<Utc>>],
        &rows.progress,
        &rows.correlation_id as &[&str],
        &rows.trace_id as &[Option<&str>],
        &rows.events,
        &fates.state as &[Option<&str>],
        &fates.turned,
        &fates.release,
        &fates.wake_at as &[Option<DateTime<Utc>>],
        &fates.cause as &[Option<&str>],
        &fates.detail as &[Option<&str>],
        &fates.seen as &[Option<i32>],
        &fates.pivot,
        &fates.output as &[Option<&str>],
        &fates.error as &[Option<&str>],
        &fates.finish,
        &fates.clears_request,
        &fates.failures as &[Option<String>],
        &fates.taken as &[Option<String>],
        &fates.job as &[Option<&str>],
        &fates.heeds_cancel,
    )
    .fetch_all(conn)
    .await?;
    Ok(moved.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
}
