//! Connections, on shelves kept apart so that a flood of API reads cannot starve the committer, nor drives the lease.
//!
//! The API's pool is sqlx's. The engine's own shelves are simpler: sqlx pings a connection each time it is given back,
//! which is a round trip for every checkpoint. A shelf takes back only connections whose work ended well and drops the
//! others, which ends their transaction too.
//!
//! Behind a transaction pooler nothing may rest on a session: statements are not cached and each runs in an explicit
//! transaction, because preparing and executing are two round trips.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::settings::Settings;

#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) api: PgPool,
    pub(crate) drives: Shelf,
    pub(crate) lanes: Shelf,
    pub(crate) queue: Shelf,
    /// For the lease thread, which connects on its own.
    pub(crate) options: PgConnectOptions,
    keyed: PgConnectOptions,
    pooler: bool,
}

impl Database {
    pub(crate) fn new(options: PgConnectOptions, settings: &Settings) -> Database {
        let options = tuned(options, settings, &[]);
        // Drivers always know their rows by key. A plan made once is kept, and one made while the tables were empty
        // must not scan them later.
        let by_key = [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")];
        let keyed = tuned(options.clone(), settings, &by_key);
        let shelf = |places: usize| Shelf::new(keyed.clone(), places, settings.pooler);
        Database {
            api: PgPoolOptions::new()
                .max_connections(settings.api_connections)
                .acquire_timeout(Duration::from_secs(5))
                .idle_timeout(Duration::from_secs(300))
                .test_before_acquire(false)
                .connect_lazy_with(options.clone()),
            drives: shelf(settings.drive_connections as usize),
            lanes: shelf(settings.lanes + 2),
            queue: shelf(2),
            options,
            keyed: keyed.clone(),
            pooler: settings.pooler,
        }
    }

    /// A shelf for a thread with a runtime of its own: a connection lives on the runtime that made it.
    pub(crate) fn shelf_apart(&self) -> Shelf {
        Shelf::new(self.keyed.clone(), 1, self.pooler)
    }

    pub(crate) async fn close(&self) {
        for shelf in [&self.queue, &self.lanes, &self.drives] {
            shelf.close().await;
        }
        self.api.close().await;
    }
}

fn tuned(options: PgConnectOptions, settings: &Settings, extra: &[(&str, &str)]) -> PgConnectOptions {
    if settings.pooler {
        return options.statement_cache_capacity(0);
    }
    let millis = |d: Duration| d.as_millis().to_string();
    options
        .options([
            // Compiling a plan costs more than any of these queries.
            ("jit", "off".to_owned()),
            ("statement_timeout", millis(settings.statement_timeout)),
            ("lock_timeout", millis(settings.lock_timeout)),
            ("idle_in_transaction_session_timeout", millis(settings.idle_in_transaction)),
        ])
        .options(extra.iter().copied())
}

/// A bounded number of connections, made when needed and kept while they work.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    places: Arc<Semaphore>,
    pooler: bool,
}

impl Shelf {
    fn new(options: PgConnectOptions, places: usize, pooler: bool) -> Shelf {
        let places = Arc::new(Semaphore::new(places.max(1)));
        Shelf { inner: Arc::new(Inner { options, idle: Mutex::default(), places, pooler }) }
    }

    /// Room for one statement.
    pub(crate) async fn session(&self) -> sqlx::Result<Session> {
        let session = self.take().await?;
        if self.inner.pooler { session.open().await } else { Ok(session) }
    }

    /// Room for a transaction; dropped without `commit`, it is rolled back.
    pub(crate) async fn begin(&self) -> sqlx::Result<Session> {
        self.take().await?.open().await
    }

    async fn take(&self) -> sqlx::Result<Session> {
        let asked = Arc::clone(&self.inner.places).acquire_owned();
        let place = tokio::time::timeout(Duration::from_secs(5), asked).await;
        let place =
            place.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_closed| sqlx::Error::PoolClosed)?;
        let kept = self.idle().pop();
        let conn = match kept {
            Some(conn) => conn,
            None => self.inner.options.connect().await?,
        };
        Ok(Session { conn: Some(conn), shelf: self.clone(), in_transaction: false, _place: place })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn close(&self) {
        self.inner.places.close();
        let idle = std::mem::take(&mut *self.idle());
        for conn in idle {
            // Whether the server hears the farewell makes no difference.
            let _ = conn.close().await;
        }
    }
}

/// A connection taken from its shelf. Only `commit` puts it back.
#[derive(Debug)]
pub(crate) struct Session {
    conn: Option<PgConnection>,
    shelf: Shelf,
    in_transaction: bool,
    _place: OwnedSemaphorePermit,
}

impl Session {
    async fn open(mut self) -> sqlx::Result<Session> {
        sqlx::raw_sql("begin").execute(&mut *self).await?;
        self.in_transaction = true;
        Ok(self)
    }

    /// Ends the transaction, if one is open, and gives the connection back.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        if self.in_transaction {
            sqlx::raw_sql("commit").execute(&mut *self).await?;
        }
        if let Some(conn) = self.conn.take()
            && !self.shelf.inner.places.is_closed()
        {
            self.shelf.idle().push(conn);
        }
        Ok(())
    }

    /// Ends the transaction and begins the next in one round trip.
    pub(crate) async fn commit_and_chain(&mut self) -> sqlx::Result<()> {
        sqlx::raw_sql("commit and chain").execute(&mut **self).await?;
        Ok(())
    }
}

#[expect(clippy::expect_used, reason = "the connection leaves a session only when the session ends")]
impl Deref for Session {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        self.conn.as_ref().expect("a session has its connection until it ends")
    }
}

#[expect(clippy::expect_used, reason = "the connection leaves a session only when the session ends")]
impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("a session has its connection until it ends")
    }
}

/// Two transactions met in the wrong order, or one waited too long for a lock: nothing was written, try again.
pub(crate) fn is_contention(error: &sqlx::Error) -> bool {
    matches!(code(error).as_deref(), Some("40P01" | "40001" | "55P03"))
}

/// Whether the statement took effect cannot be told from the error alone.
pub(crate) fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => code(error).is_some_and(|c| {
            c.starts_with("08") || c.starts_with("57") || c.starts_with("53") || c == "25P03" || c == "XX000"
        }),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// The statement took longer than it may; the database itself is well.
pub(crate) fn is_timeout(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some("57014")
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned())
}
