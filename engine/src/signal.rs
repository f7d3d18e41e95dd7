//! Signals from outside. The sender's transaction stores the signal and raises the run's counter, so a driver that is
//! about to rest sees either the signal or the changed counter, never neither.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission;
use crate::database::Shelf;
use crate::engine::{Engine, EngineError, Inner};
use crate::payload;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// Stored; the run is woken if it waits for one.
    Kept,
    /// The same dedupe key came before.
    Duplicate,
    /// The run ended, or gave up waiting for this: kept as evidence and shown with the run.
    Late,
}

impl Engine {
    /// Sends a signal on the caller's transaction. Commit, then call `wake`.
    pub async fn signal(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        name: &str,
        dedupe_key: &str,
        payload: &Value,
    ) -> Result<Signalled, EngineError> {
        let settings = &self.inner.settings;
        let payload = payload::encode(payload, settings.max_signal, settings)
            .map_err(|error| EngineError::Payload { what: "signal", error })?;
        deliver(&self.inner, conn, run, name, dedupe_key, &payload).await?.ok_or(EngineError::NoSuchRun(run))
    }
}

/// `None` when there is no such run.
pub(crate) async fn deliver(
    engine: &Inner,
    conn: &mut PgConnection,
    run: Uuid,
    name: &str,
    dedupe_key: &str,
    payload: &str,
) -> sqlx::Result<Option<Signalled>> {
    // The run's row first: it is the lock that orders this against a driver coming to rest.
    let row = sqlx::query!(
        r#"select project_id, finished_at is not null as "ended!", owner, queued_job, cause,
                  (cause = 'waiting_signal' and cause_detail ->> 'signal' = $2) is true as "awaited!"
           from engine.run where id = $1 for update"#,
        run,
        name
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    // Whoever waits for this very signal has no answer yet; only else is it worth reading the journal.
    let late = row.ended || (!row.awaited && is_answered(conn, run, name).await?);
    let stored = sqlx::query!(
        "insert into engine.signal (run_id, name, dedupe_key, payload, state)
         values ($1, $2, $3, $4::text::jsonb, $5) on conflict do nothing",
        run,
        name,
        dedupe_key,
        payload,
        if late { "late" } else { "kept" }
    )
    .execute(&mut *conn)
    .await?;
    if stored.rows_affected() == 0 {
        return Ok(Some(Signalled::Duplicate));
    }
    if late {
        return Ok(Some(Signalled::Late));
    }
    sqlx::query!("update engine.run set signals = signals + 1 where id = $1", run)
        .execute(&mut *conn)
        .await?;
    // A run in backoff keeps its backoff; only one that waits to be told is woken.
    let waits = matches!(row.cause.as_deref(), Some("waiting_signal" | "waiting_for_run"));
    if waits && row.owner.is_none() && row.queued_job.is_none() {
        admission::admit_or_ready(engine, conn, run, row.project_id).await?;
    }
    Ok(Some(Signalled::Kept))
}

/// What a run left that no wait of it took comes too late, now that the run has ended.
pub(crate) async fn settle_leftovers(shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    sqlx::query!(
        "update engine.signal s set state = 'late' where s.state = 'kept'
           and exists (select from engine.run r where r.id = s.run_id and r.finished_at is not null)"
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

/// Asked once the run's row is ours: what a driver journaled while we waited for it must be seen.
async fn is_answered(conn: &mut PgConnection, run: Uuid, name: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from engine.steps_of($1) s where s.output is not null and s.op = 'wait'
               and (s.name = $2 or s.name || '/' || s.key = $2)) as "answered!""#,
        run,
        name
    )
    .fetch_one(conn)
    .await
}
