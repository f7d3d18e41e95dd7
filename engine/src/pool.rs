//! The connections of whoever answers requests or acts for a step. They come as transactions only: behind a transaction
//! pooler a statement by itself may be prepared in one session and executed in another, and the limits of a session
//! would be somebody else's.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use sqlx::{AssertSqlSafe, PgPool, PgTransaction, SqlSafeStr, Transaction};
use tokio::runtime::Handle;

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
        let words = match &*self.limits {
            "" => begin.into_sql_str(),
            limits => AssertSqlSafe(format!("{begin}{limits}")).into_sql_str(),
        };
        let connection = self.connections.acquire().await?;
        Begin(Some(Transaction::begin(connection, Some(words)))).await
    }
}

/// A transaction that is about to begin. Should nobody wait for it any more, because a caller went away, it begins all the same and
/// is rolled back: sqlx would give the connection back while it begins, and whoever came next would be in the middle of it.
struct Begin(Option<BoxFuture<'static, sqlx::Result<PgTransaction<'static>>>>);

impl Future for Begin {
    type Output = sqlx::Result<PgTransaction<'static>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(begin) = self.0.as_mut() else { return Poll::Pending };
        let begun = ready!(begin.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(begun)
    }
}

impl Drop for Begin {
    fn drop(&mut self) {
        if let (Some(begin), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(begin);
        }
    }
}
