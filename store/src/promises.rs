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

/// Of everything; or else of what changed after a time, and of the instances whose turn it is, one part in 1024.
pub async fn check(conn: &mut PgConnection, only: Option<(DateTime<Utc>, i32)>) -> sqlx::Result<Vec<Broken>> {
    let (since, turn) = only.unzip();
    sqlx::query_file_as!(Broken, "queries/promises.sql", since, turn).fetch_all(conn).await
}
