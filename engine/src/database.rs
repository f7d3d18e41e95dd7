//! Connections, on shelves kept apart so that a flood of API reads cannot starve the committer, nor drives the lease.
//!
//! The API's pool is sqlx's. The engine's own shelves are simpler: sqlx pings a connection each time it is given back,
//! which is a round trip for every checkpoint. A shelf takes back only connections whose work ended well and drops the
//! others, which ends their transaction too.
//!
//! Every limit of a statement is kept by the server. One whose machine is gone keeps none and says nothing, so whoever waits for
//! an answer waits no longer than `in_time`; what was asked is then unknown, as with any lost connection.
//!
//! Behind a transaction pooler nothing may rest on a session: statements are not cached, each runs in an explicit
//! transaction, because preparing and executing are two round trips, and every transaction sets its limits itself.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::pool::Pool;
use crate::settings::{QUEUE_CONNECTIONS, Settings};

#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) api: Pool,
    pub(crate) drives: Shelf,
    pub(crate) lanes: Shelf,
    pub(crate) queue: Shelf,
    /// For a check that may take long, which connects on its own.
    pub(crate) options: PgConnectOptions,
    keyed: Rules,
}

/// A server that would answer has done so, or said that it took too long.
fn silence(settings: &Settings) -> Duration {
    3 * settings.statement_timeout
}

impl Database {
    pub(crate) fn new(options: PgConnectOptions, settings: &Settings) -> Database {
        // Drivers always know their rows by key. A plan made once is kept, and one made while the tables were empty
        // must not scan them later. A row that somebody holds is given up before it could pass for a slow database.
        let lock_timeout =
            settings.lock_timeout.min(settings.pressure_after).mul_f64(0.9).as_millis().to_string();
        let by_key = [
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("lock_timeout", lock_timeout.as_str()),
        ];
        let (usual, keyed) = (Rules::new(&options, settings, &[]), Rules::new(&options, settings, &by_key));
        let shelf = |places: usize| Shelf::new(keyed.clone(), places);
        let connections = PgPoolOptions::new()
            .max_connections(settings.api_connections)
            .acquire_timeout(Duration::from_secs(5))
            .idle_timeout(Duration::from_secs(300))
            .test_before_acquire(false)
            .connect_lazy_with(usual.options.clone());
        Database {
            api: Pool::new(connections, &usual.limits),
            drives: shelf(settings.drive_connections as usize),
            lanes: shelf(settings.lane_connections()),
            queue: shelf(QUEUE_CONNECTIONS),
            options: usual.options,
            keyed: keyed.clone(),
        }
    }

    /// A shelf for a thread with a runtime of its own: a connection lives on the runtime that made it.
    pub(crate) fn shelf_apart(&self) -> Shelf {
        Shelf::new(self.keyed.clone(), 1)
    }

    /// Work of one or a few statements, given up where no answer comes at all.
    pub(crate) fn in_time<T, E: From<sqlx::Error>, F: Future<Output = Result<T, E>>>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F> {
        in_time(self.keyed.silence, work)
    }

    pub(crate) async fn close(&self) {
        for shelf in [&self.queue, &self.lanes, &self.drives] {
            shelf.close().await;
        }
        self.api.close().await;
    }
}

/// How connections are made, and what their transactions run under: the session's settings, or behind a pooler, which
/// shares sessions, those that each transaction begins with.
#[derive(Debug, Clone)]
struct Rules {
    options: PgConnectOptions,
    pooler: bool,
    /// How long an answer may take before nobody is there to give it.
    silence: Duration,
    /// Follows every `begin`; empty without a pooler.
    limits: Arc<str>,
}

impl Rules {
    fn new(options: &PgConnectOptions, settings: &Settings, extra: &[(&str, &str)]) -> Rules {
        let millis = |d: Duration| d.as_millis().to_string();
        let mut all = vec![
            // Compiling a plan costs more than any of these queries.
            ("jit", "off".to_owned()),
            ("statement_timeout", millis(settings.statement_timeout)),
            ("lock_timeout", millis(settings.lock_timeout)),
            ("idle_in_transaction_session_timeout", millis(settings.idle_in_transaction)),
        ];
        all.extend(extra.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let (pooler, silence) = (settings.pooler, silence(settings));
        if !pooler {
            return Rules { options: options.clone().options(all), pooler, silence, limits: "".into() };
        }
        let limits: String =
            all.iter().map(|(name, value)| format!("; set local {name} = '{value}'")).collect();
        let options = options.clone().statement_cache_capacity(0);
        Rules { options, pooler, silence, limits: limits.into() }
    }
}

/// A bounded number of connections, made when needed and kept while they work.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: Rules,
    idle: Mutex<Vec<PgConnection>>,
    places: Arc<Semaphore>,
}

impl Shelf {
    fn new(rules: Rules, places: usize) -> Shelf {
        let places = Arc::new(Semaphore::new(places.max(1)));
        Shelf { inner: Arc::new(Inner { rules, idle: Mutex::default(), places }) }
    }

    /// Room for one statement.
    pub(crate) async fn session(&self) -> sqlx::Result<Session> {
        let session = self.take().await?;
        if self.inner.rules.pooler { session.open().await } else { Ok(session) }
    }

    /// Room for a transaction; dropped without `commit`, it is rolled back.
    pub(crate) async fn begin(&self) -> sqlx::Result<Session> {
        self.take().await?.open().await
    }

    async fn take(&self) -> sqlx::Result<Session> {
        let asked = Arc::clone(&self.inner.places).acquire_owned();
        let place = timeout(Duration::from_secs(5), asked).await;
        let place =
            place.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_closed| sqlx::Error::PoolClosed)?;
        let kept = self.idle().pop();
        let conn = match kept {
            Some(conn) => conn,
            None => in_time(self.inner.rules.silence, self.inner.rules.options.connect()).await?,
        };
        Ok(Session { conn: Some(conn), shelf: self.clone(), in_transaction: false, _place: place })
    }

    /// Work on one of its connections, given up where no answer comes at all.
    pub(crate) fn in_time<T, E: From<sqlx::Error>, F: Future<Output = Result<T, E>>>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, F> {
        in_time(self.inner.rules.silence, work)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn close(&self) {
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
        self.begin_by("begin").await?;
        self.in_transaction = true;
        Ok(self)
    }

    /// Ends the transaction, if one is open, and gives the connection back.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        if self.in_transaction {
            let silence = self.shelf.inner.rules.silence;
            in_time(silence, sqlx::raw_sql("commit").execute(&mut *self)).await?;
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
        self.begin_by("commit and chain").await
    }

    async fn begin_by(&mut self, words: &'static str) -> sqlx::Result<()> {
        let Rules { limits, silence, .. } = self.shelf.inner.rules.clone();
        if limits.is_empty() {
            in_time(silence, sqlx::raw_sql(words).execute(&mut **self)).await?;
        } else {
            let words = AssertSqlSafe(format!("{words}{limits}"));
            in_time(silence, sqlx::raw_sql(words).execute(&mut **self)).await?;
        }
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

/// Silence is an error like any other that a lost connection brings: what was asked may or may not have happened.
/// Not an async function: that would hold the work twice, and drives are large already.
fn in_time<T, E: From<sqlx::Error>, F: Future<Output = Result<T, E>>>(
    limit: Duration,
    work: F,
) -> impl Future<Output = Result<T, E>> + use<T, E, F> {
    let silent = || sqlx::Error::Io(io::ErrorKind::TimedOut.into());
    timeout(limit, work).map(move |answered| answered.unwrap_or_else(|_elapsed| Err(silent().into())))
}

/// One waited too long for a lock: somebody holds the row, and the database itself is well.
pub(crate) fn is_locked(error: &sqlx::Error) -> bool {
    code(error).as_deref() == Some("55P03")
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
