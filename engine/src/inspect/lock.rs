//! Holding a run still for the rest of a transaction, so that what was read of it is true when it is acted upon.

use sqlx::PgConnection;
use uuid::Uuid;

/// Whether the run exists. Its driver's next checkpoint waits until the transaction ends: be short.
pub async fn lock(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<bool> {
    let row =
        sqlx::query!("select id from engine.run where id = $1 for update", run).fetch_optional(conn).await?;
    Ok(row.is_some())
}
