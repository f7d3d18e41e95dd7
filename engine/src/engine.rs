//! The handle everybody holds: it starts, signals, operates and reads. Driving is `Workers`' part.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use sqlx::postgres::PgConnectOptions;
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::admission::Admission;
use crate::berth::Host;
use crate::database::Database;
use crate::failpoint::Faults;
use crate::intake::Bell;
use crate::invariants::AlsoPromised;
use crate::payload::PayloadError;
use crate::pool::Pool;
use crate::registry::Kind;
use crate::retention;
use crate::settings::Settings;
use crate::state::RunState;
use crate::stats::Stats;

#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) db: Database,
    pub(crate) settings: Settings,
    pub(crate) stats: Arc<Stats>,
    pub(crate) admission: Admission,
    /// Rung after a commit that queued a job, so that a local worker looks at once.
    pub(crate) bell: Arc<Bell>,
    pub(crate) changes: broadcast::Sender<RunChange>,
    pub(crate) rests: broadcast::Sender<RunChange>,
    pub(crate) kinds: OnceLock<Vec<Kind>>,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) also_promised: OnceLock<AlsoPromised>,
    /// The crew of this process, while it takes new runs.
    host: RwLock<Option<Arc<dyn Host>>>,
}

/// A hint that a run's row changed in this process; the database is the truth and other processes are silent here.
#[derive(Debug, Clone, Copy)]
pub struct RunChange {
    pub run: Uuid,
}

#[derive(Debug, Clone)]
pub struct RunHandle {
    pub id: Uuid,
    pub kind: String,
    pub state: RunState,
    pub project_id: Uuid,
    pub correlation_id: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("there is no run {0}")]
    NoSuchRun(Uuid),
    #[error("the {what} {error}")]
    Payload { what: &'static str, error: PayloadError },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Engine {
    /// Nothing is connected until it is needed.
    pub fn new(database: PgConnectOptions, settings: Settings) -> Engine {
        Engine::with_faults(database, settings, None)
    }

    /// For tests: `faults` is asked at every failpoint.
    pub fn with_faults(
        database: PgConnectOptions,
        settings: Settings,
        faults: Option<Arc<dyn Faults>>,
    ) -> Engine {
        let (changes, _) = broadcast::channel(1024);
        let (rests, _) = broadcast::channel(1024);
        Engine {
            inner: Arc::new(Inner {
                db: Database::new(database, &settings),
                stats: Arc::new(Stats::default()),
                admission: Admission::new(&settings),
                bell: Arc::new(Bell::default()),
                changes,
                rests,
                kinds: OnceLock::new(),
                faults,
                also_promised: OnceLock::new(),
                host: RwLock::default(),
                settings,
            }),
        }
    }

    pub fn pool(&self) -> &Pool {
        &self.inner.db.api
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// The workflows this process knows; empty until workers start or `knows` was called.
    pub fn kinds(&self) -> Vec<Kind> {
        self.inner.kinds.get().cloned().unwrap_or_default()
    }

    /// Tells a process that only serves the API which workflows exist.
    pub fn knows(&self, kinds: Vec<Kind>) {
        let _ = self.inner.kinds.set(kinds);
    }

    pub fn changes(&self) -> broadcast::Receiver<RunChange> {
        self.inner.changes.subscribe()
    }

    /// As `changes`, but only when a run came to rest or ended: who waits for that is not woken by every step.
    pub fn rests(&self) -> broadcast::Receiver<RunChange> {
        self.inner.rests.subscribe()
    }

    /// Call after the commit of a signal or operator's act: a local worker then looks at once.
    /// Forgetting it costs latency up to the poll interval, nothing else.
    pub fn wake(&self) {
        self.inner.bell.ring();
        self.inner.admission.committed();
    }

    /// Whether new work should be refused now: the database does not keep up with this process, or with any that drives.
    pub fn pressed(&self) -> bool {
        self.inner.is_pressed() || self.inner.admission.everybody_is_pressed()
    }

    /// Takes away the history that is older than the settings keep it, as every process does now and then. Answers how many
    /// runs went.
    pub async fn clear_history(&self) -> sqlx::Result<usize> {
        let shelf = self.inner.db.shelf_apart();
        let gone = retention::sweep(&self.inner, &shelf, usize::MAX).await;
        shelf.close().await;
        gone
    }

    /// Closes the pools, the committer's first.
    pub async fn close(&self) {
        self.inner.db.close().await;
    }
}

impl Inner {
    pub(crate) fn host(&self) -> Option<Arc<dyn Host>> {
        self.host.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_host(&self, host: Option<Arc<dyn Host>>) {
        *self.host.write().unwrap_or_else(PoisonError::into_inner) = host;
    }

    /// The database does not keep up with this process.
    pub(crate) fn is_pressed(&self) -> bool {
        self.stats.pressed_for().is_some_and(|long| long > self.settings.pressure_after)
    }

    pub(crate) fn changed(&self, run: Uuid) {
        // Nobody listening is fine.
        let _ = self.changes.send(RunChange { run });
    }

    pub(crate) fn rested(&self, run: Uuid) {
        let _ = self.rests.send(RunChange { run });
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("slots", &self.inner.settings.slots).finish_non_exhaustive()
    }
}
