//! One checker for the engine's promises, and with it whatever its host has promised besides. Tests run it after every
//! story, production each minute over what changed since the last time and in full every night. An empty answer means every
//! promise holds.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::BoxFuture;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tracing::error;
use uuid::Uuid;

use crate::database::Shelf;
use crate::engine::{Engine, Inner};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: String,
    pub run_id: Option<Uuid>,
    pub detail: String,
}

/// Looks for promises broken beside the runs; with a time, among what changed since.
pub type AlsoPromised =
    for<'c> fn(&'c mut PgConnection, Option<DateTime<Utc>>) -> BoxFuture<'c, sqlx::Result<Vec<Violation>>>;

impl Engine {
    /// From here on this is looked at wherever the engine's own promises are.
    pub fn also_promises(&self, check: AlsoPromised) {
        let _ = self.inner.also_promised.set(check);
    }

    /// The full check, on a connection of its own: all of history may take minutes, and nobody should wait behind it.
    pub async fn check_promises(&self, within: Duration) -> sqlx::Result<Vec<Violation>> {
        let mut conn = self.inner.db.options.connect().await?;
        let mut tx = conn.begin().await?;
        let limit = within.as_millis().to_string();
        sqlx::query!(
            "select set_config('statement_timeout', $1, true) as statement, set_config('lock_timeout', $1, true) as lock",
            limit
        )
        .fetch_one(&mut *tx)
        .await?;
        let broken = check_all(&self.inner, &mut tx, None).await?;
        tx.commit().await?;
        conn.close().await?;
        tell(&self.inner, &broken);
        Ok(broken)
    }
}

/// The check of what changed since the last one, which every process repeats each minute. Answers when this one was.
pub(crate) async fn watch(
    engine: &Inner,
    shelf: &Shelf,
    last: Option<DateTime<Utc>>,
) -> sqlx::Result<DateTime<Utc>> {
    let mut tx = shelf.begin().await?;
    let now = sqlx::query_scalar!(r#"select engine.now() as "now!""#).fetch_one(&mut *tx).await?;
    // What was under way during the last look may have been committed behind its back.
    let since = last.unwrap_or(now - TimeDelta::minutes(1)) - TimeDelta::seconds(30);
    let broken = check_all(engine, &mut tx, Some(since)).await?;
    tx.commit().await?;
    tell(engine, &broken);
    Ok(now)
}

pub(crate) async fn check_all(
    engine: &Inner,
    conn: &mut PgConnection,
    since: Option<DateTime<Utc>>,
) -> sqlx::Result<Vec<Violation>> {
    let mut broken = check_invariants(&mut *conn, since).await?;
    if let Some(check) = engine.also_promised.get() {
        broken.extend(check(conn, since).await?);
    }
    Ok(broken)
}

/// Whoever looks, a broken promise is counted and logged.
fn tell(engine: &Inner, broken: &[Violation]) {
    engine.stats.promises_broken.fetch_add(broken.len() as u64, Relaxed);
    for Violation { promise, run_id, detail } in broken {
        error!(promise, ?run_id, detail, "a promise is broken");
    }
}

/// With `since`, only runs that live or ended after that time are looked at.
pub async fn check_invariants(
    conn: &mut PgConnection,
    since: Option<DateTime<Utc>>,
) -> sqlx::Result<Vec<Violation>> {
    sqlx::query_file_as!(Violation, "queries/invariants.sql", since).fetch_all(conn).await
}
