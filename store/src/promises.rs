//! The promises that concern what the platform keeps beside its runs: what instances hold, what was told and what was
//! audited. The engine checks its own.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub promise: String,
    /// The instance or run it was made to.
    pub subject: Uuid,
    pub detail: String,
}

/// With `since`, only of what changed after that time.
pub async fn check(conn: &mut PgConnection, since: Option<DateTime<Utc>>) -> sqlx::Result<Vec<Broken>> {
    sqlx::query_file_as!(Broken, "queries/promises.sql", since).fetch_all(conn).await
}
