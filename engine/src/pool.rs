//! The connections of whoever answers requests or acts for a step. They come as transactions only: behind a transaction
//! pooler a statement by itself may be prepared in one session and executed in another, and the limits of a session
//! would be somebody else's.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, PgPool, PgTransaction};

#[derive(Debug, Clone)]
pub struct Pool {
    connections: PgPool,
    /// What follows every `begin` where no session can be trusted to keep it; empty elsewhere.
    limits: Arc<str>,
}

impl Pool {
    pub(crate) fn new(connections: PgPool, limits: &str) -> Pool {
        Pool { connections, limits: limits.into() }
    }

    pub async fn begin(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.open("begin").await
    }

    /// A transaction that sees one moment of the database and changes nothing.
    pub async fn snapshot(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.open("begin isolation level repeatable read read only").await
    }

    /// The connections as they are. Only where no pooler stands between, as in tests.
    pub fn bare(&self) -> &PgPool {
        &self.connections
    }

    pub(crate) async fn close(&self) {
        self.connections.close().await;
    }

    async fn open(&self, begin: &'static str) -> sqlx::Result<PgTransaction<'static>> {
        if self.limits.is_empty() {
            return self.connections.begin_with(begin).await;
        }
        self.connections.begin_with(AssertSqlSafe(format!("{begin}{}", self.limits))).await
    }
}
