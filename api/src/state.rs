//! What every handler holds: the engine, the pool, the keys tokens are judged by, and whether the process is about to
//! stop.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use clients::Clock;
use clients::oidc::Verifier;
use clients::seal::Sealer;
use clients::tokens::Minter;
use domain::ErrorCode;
use engine::{Engine, Pool};
use sqlx::PgTransaction;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workflows::TaskSigners;
use workflows::sequencer::Hints;

use crate::console::Console;
use crate::depot::Depot;
use crate::error::ApiError;
use crate::events::EventWatch;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::node_agent::TaskWatch;
use crate::places::Places;
use crate::rate::Limiter;
use crate::strangers::Strangers;

/// What the binary knows of itself.
#[derive(Clone, Debug)]
pub struct Build {
    pub name: &'static str,
    pub version: &'static str,
    /// The commit it was built from, where known.
    pub git: Option<&'static str>,
    /// The newest migration it carries.
    pub schema: i64,
}

/// By what tokens are judged and made.
#[derive(Clone)]
pub struct Keys {
    /// Other issuers' tokens, for people.
    pub verifier: Arc<Verifier>,
    /// The platform's own tokens, for machines.
    pub minter: Minter,
    /// The time by which a token has expired.
    pub clock: Arc<dyn Clock>,
    /// Secrets at rest.
    pub sealer: Sealer,
}

/// Cloned for every layer a request passes, so it is one pointer.
#[derive(Clone)]
pub struct State(Arc<Held>);

#[derive(Clone)]
pub struct Held {
    pub engine: Engine,
    pub pool: Pool,
    pub build: Build,
    pub(crate) keys: Keys,
    pub(crate) identity: Arc<Identity>,
    pub(crate) places: Arc<Places>,
    pub(crate) limiter: Arc<Limiter<Uuid>>,
    pub(crate) strangers: Arc<Strangers>,
    /// How many proxies of ours stand before this server.
    pub(crate) proxies: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) console: Console,
    pub(crate) signers: TaskSigners,
    pub(crate) tasks: Arc<TaskWatch>,
    /// Where this process's sequencer hears that something may have been told.
    pub(crate) hints: Hints,
    pub(crate) events: Arc<EventWatch>,
    pub(crate) draining: CancellationToken,
    /// The longest that the head of a request, and then its body, may take to arrive.
    pub(crate) receive_within: Duration,
    /// Where artifacts are kept; a platform without one takes none.
    depot: Option<Arc<Depot>>,
}

impl State {
    pub fn new(engine: Engine, build: Build, keys: Keys) -> State {
        State(Arc::new(Held {
            pool: engine.pool().clone(),
            metrics: Arc::new(Metrics::new(&engine, &Hints::default())),
            draining: CancellationToken::new(),
            receive_within: Duration::from_secs(30),
            console: Console::default(),
            identity: Arc::default(),
            places: Arc::default(),
            limiter: Arc::default(),
            strangers: Arc::new(Strangers::limited_to(600)),
            proxies: 0,
            depot: None,
            signers: TaskSigners::new(keys.sealer.clone()),
            tasks: Arc::default(),
            hints: Hints::default(),
            events: Arc::default(),
            keys,
            engine,
            build,
        }))
    }

    /// Waits this long for a request that trickles in, and no longer.
    #[must_use]
    pub fn receiving_within(mut self, receive_within: Duration) -> State {
        self.held().receive_within = receive_within;
        self
    }

    /// Whoever shows no proof may ask this often a minute, from one address.
    #[must_use]
    pub fn limiting_strangers(mut self, per_minute: u32) -> State {
        self.held().strangers = Arc::new(Strangers::limited_to(per_minute));
        self
    }

    /// Believes the last so many entries of `X-Forwarded-For`, which proxies of ours wrote.
    #[must_use]
    pub fn behind_proxies(mut self, proxies: usize) -> State {
        self.held().proxies = proxies;
        self
    }

    /// Shares hints with the sequencer of this process.
    #[must_use]
    pub fn hinting(mut self, hints: Hints) -> State {
        let metrics = Metrics::new(&self.engine, &hints);
        let held = self.held();
        (held.metrics, held.hints) = (Arc::new(metrics), hints);
        self
    }

    #[must_use]
    pub fn with_depot(mut self, depot: Depot) -> State {
        self.held().depot = Some(Arc::new(depot));
        self
    }

    pub(crate) fn depot(&self) -> Result<&Depot, ApiError> {
        let missing = || ApiError::new(ErrorCode::ServiceUnavailable, "No image registry is configured.");
        self.depot.as_deref().ok_or_else(missing)
    }

    /// Serves the console as well.
    #[must_use]
    pub fn with_console(mut self, console: Console) -> State {
        self.held().console = console;
        self
    }

    /// For building it; what was handed out before does not change.
    fn held(&mut self) -> &mut Held {
        Arc::make_mut(&mut self.0)
    }

    /// Begins the end: `/readyz` turns false, long polls answer, streams close. Requests are still served.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// A transaction that sees one moment of the database and changes nothing.
    pub(crate) async fn read(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.pool.snapshot().await
    }

    /// The one transaction of a handler that changes something.
    pub(crate) async fn write(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.pool.begin().await
    }
}

impl Deref for State {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}
