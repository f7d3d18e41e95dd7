//! What every handler holds: the engine, the pool, and whether the process is about to stop.

use std::sync::Arc;

use engine::Engine;
use sqlx::{PgPool, PgTransaction};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

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

#[derive(Clone)]
pub struct State {
    pub engine: Engine,
    pub pool: PgPool,
    pub build: Build,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: CancellationToken,
}

impl State {
    pub fn new(engine: Engine, build: Build) -> State {
        State {
            pool: engine.pool().clone(),
            metrics: Arc::new(Metrics::new(&engine)),
            draining: CancellationToken::new(),
            engine,
            build,
        }
    }

    /// Begins the end: `/readyz` turns false, long polls answer, streams close. Requests are still served.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// A transaction that sees one moment of the database and changes nothing.
    pub(crate) async fn read(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.pool.begin_with("begin isolation level repeatable read read only").await
    }

    /// The one transaction of a handler that changes something.
    pub(crate) async fn write(&self) -> sqlx::Result<PgTransaction<'static>> {
        self.pool.begin().await
    }
}
