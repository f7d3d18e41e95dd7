//! The checkpoint of a lone run, whose latency it is: plain values instead of arrays.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Checkpoint, Moved};

/// An empty answer means the guard did not hold.
pub(super) async fn advance(
    conn: &mut PgConnection,
    owner: Uuid,
    c: &Checkpoint,
) -> sqlx::Result<HashMap<Uuid, Moved>> {
    let (settle, intend) = (c.entries.settles.first(), c.entries.intends.first());
    let (one, two) = (c.entries.tried.first(), c.entries.tried.get(1));
    let row = sqlx::query_file!(
        "queries/advance_one.sql",
        c.run,
        c.epoch,
        c.seq,
        c.token,
        c.pivot,
        c.step_deadline,
        c.is_progress(),
        owner,
        settle.map(|s| s.name.as_str()),
        settle.map(|s| s.key.as_str()),
        settle.map(|s| s.state.as_str()),
        settle.map(|s| s.attempt),
        settle.map(|s| s.undo_attempt),
        settle.and_then(|s| s.output.as_deref()),
        settle.and_then(|s| s.error.as_deref()),
        settle.and_then(|s| s.finished_at),
        intend.map(|i| i.name.as_str()),
        intend.map(|i| i.key.as_str()),
        intend.map(|i| i.seq),
        intend.map(|i| i.op.as_str()),
        intend.map(|i| i.state.as_str()),
        intend.map(|i| i.undoable),
        intend.map(|i| i.input_hash.as_slice()),
        intend.and_then(|i| i.input.as_deref()),
        intend.and_then(|i| i.output.as_deref()),
        intend.and_then(|i| i.error.as_deref()),
        intend.and_then(|i| i.deadline_at),
        intend.map(|i| i.started_at),
        intend.and_then(|i| i.finished_at),
        &*c.correlation_id,
        c.trace_id.as_deref(),
        one.map(|t| t.at),
        one.map(|t| t.name.as_str()),
        one.map(|t| t.key.as_str()),
        one.map(|t| t.undo),
        one.map(|t| t.attempt),
        one.map(|t| t.outcome),
        one.and_then(|t| t.error.as_deref()),
        one.map(|t| t.started_at),
        two.map(|t| t.at),
        two.map(|t| t.name.as_str()),
        two.map(|t| t.key.as_str()),
        two.map(|t| t.undo),
        two.map(|t| t.attempt),
        two.map(|t| t.outcome),
        two.and_then(|t| t.error.as_deref()),
        two.map(|t| t.started_at),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.into_iter().map(|r| (r.id, Moved { request: r.request, signals: r.signals })).collect())
}
