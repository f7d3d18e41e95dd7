//! The checkpoints of a lone run, whose latency they are: plain values instead of arrays.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Checkpoint, Moved};
use crate::event;
use crate::state::RunState;

/// An empty answer means the run is no longer ours.
pub(super) async fn advance(
    conn: &mut PgConnection,
    owner: Uuid,
    c: &Checkpoint,
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let row = sqlx::query_file!(
        "queries/advance_one.sql",
        c.run,
        c.epoch,
        owner,
        c.seq,
        c.token,
        c.deadline_at,
        c.is_progress(),
        &*c.correlation_id,
        c.trace_id.as_deref(),
        event::to_json(&c.entries.events),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
}

/// The run is over, and this is all there is to say of it.
pub(super) struct End<'a> {
    pub(super) state: RunState,
    pub(super) output: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    pub(super) heeds_cancel: bool,
}

/// An empty answer means the run is no longer ours, or must look again.
pub(super) async fn finish(
    conn: &mut PgConnection,
    owner: Uuid,
    c: &Checkpoint,
    end: End<'_>,
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let row = sqlx::query_file!(
        "queries/finish_one.sql",
        c.run,
        c.epoch,
        owner,
        c.seq,
        c.token,
        c.deadline_at,
        c.is_progress(),
        &*c.correlation_id,
        c.trace_id.as_deref(),
        event::to_json(&c.entries.events),
        end.state.as_str(),
        c.pivot,
        end.output,
        end.error,
        end.heeds_cancel,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.into_iter().map(|r| (r.id, Moved { request: None, signals: r.signals })).collect())
}
