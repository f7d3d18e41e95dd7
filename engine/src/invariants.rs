//! One checker for the engine's promises. Tests run it after every story, production each minute over what changed
//! since the last time and in full every night. An empty answer means every promise holds.

use std::sync::atomic::Ordering::Relaxed;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tracing::error;
use uuid::Uuid;

use crate::database::Shelf;
use crate::engine::Inner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: String,
    pub run_id: Option<Uuid>,
    pub detail: String,
}

/// The check of the last minute or so, which every process repeats; `gpuaas doctor` makes the full one.
pub(crate) async fn watch(engine: &Inner, shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    let since = sqlx::query_scalar!(r#"select engine.now() - interval '90 seconds' as "since!""#)
        .fetch_one(&mut *tx)
        .await?;
    let broken = check_invariants(&mut tx, Some(since)).await?;
    tx.commit().await?;
    engine.stats.promises_broken.fetch_add(broken.len() as u64, Relaxed);
    for violation in broken {
        error!(promise = violation.promise, run_id = ?violation.run_id, detail = violation.detail, "a promise is broken");
    }
    Ok(())
}

/// With `since`, only runs that live or ended after that time are looked at.
pub async fn check_invariants(
    conn: &mut PgConnection,
    since: Option<DateTime<Utc>>,
) -> sqlx::Result<Vec<Violation>> {
    sqlx::query_file_as!(Violation, "queries/invariants.sql", since).fetch_all(conn).await
}
