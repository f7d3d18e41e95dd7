//! Runs kept in flight: sixteen starters, each start a transaction of its own, never more than so many unfinished.
//!
//! That a run ended is learnt from the engine's counter, looked at every millisecond: it costs the measured process
//! next to nothing, while asking the database or following every change would be load of another kind.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use engine::{Engine, Start, Workers, Workflow};
use sqlx::{PgConnection, PgPool};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::failure::Failure;
use crate::server::Database;
use crate::workload::{self, Env, PROJECT, TenSteps};

/// As many as the reference has clients.
const STARTERS: usize = 16;
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A load during which nothing finishes for so long has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// An engine with workers on a database.
pub struct Site {
    pub engine: Engine,
    pub pool: PgPool,
    workers: Workers,
}

impl Site {
    pub fn open(database: &Database, env: Env) -> Site {
        let engine = Engine::new(database.options.clone(), workload::settings());
        let workers = Workers::start(&engine, Arc::new(env), workload::registry());
        Site { engine, pool: database.pool.clone(), workers }
    }

    pub async fn close(self) {
        self.workers.stop().await;
        self.engine.close().await;
    }

    pub fn finished(&self) -> u64 {
        self.engine.stats().runs_finished.load(Relaxed)
    }

    /// Starts and finishes `runs` runs of ten steps, and tells how long that took.
    pub async fn drive(&self, runs: u64, in_flight: usize) -> Result<Duration, Failure> {
        let before = self.finished();
        let room = Arc::new(Semaphore::new(in_flight));
        let left = Arc::new(AtomicU64::new(runs));
        let began = Instant::now();
        let mut starters = JoinSet::new();
        for _ in 0..STARTERS {
            let (engine, pool) = (self.engine.clone(), self.pool.clone());
            starters.spawn(start_while_room(engine, pool, Arc::clone(&left), Arc::clone(&room)));
        }
        self.make_room(&room, before, runs).await?;
        let took = began.elapsed();
        while let Some(starter) = starters.join_next().await {
            starter.map_err(|panic| Failure::Setup(panic.to_string()))??;
        }
        Ok(took)
    }

    /// Gives back the place of every run that ended, until all have.
    async fn make_room(&self, room: &Semaphore, before: u64, runs: u64) -> Result<(), Failure> {
        let (mut given_back, mut moved) = (0, Instant::now());
        while given_back < runs {
            sleep(LOOK_EVERY).await;
            let ended = self.finished() - before;
            if ended > given_back {
                room.add_permits(usize::try_from(ended - given_back).unwrap_or_default());
                (given_back, moved) = (ended, Instant::now());
            } else if moved.elapsed() > PATIENCE {
                return Err(Failure::Patience(format!("the run after {ended} of {runs} finished")));
            }
        }
        Ok(())
    }
}

async fn start_while_room(
    engine: Engine,
    pool: PgPool,
    left: Arc<AtomicU64>,
    room: Arc<Semaphore>,
) -> Result<(), Failure> {
    // A starter keeps its connection, as a client of pgbench does.
    let mut conn = pool.acquire().await?;
    while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
        match room.acquire().await {
            Ok(place) => place.forget(),
            Err(_closed) => return Ok(()),
        }
        start(&engine, &mut conn, &TenSteps { payload: workload::payload() }).await?;
    }
    Ok(())
}

/// Starts one run in a transaction of its own, which one statement on a connection is, then begins it.
pub async fn start<W: Workflow>(
    engine: &Engine,
    conn: &mut PgConnection,
    workflow: &W,
) -> Result<(), Failure> {
    let options = Start { project_id: PROJECT, correlation_id: "bench".into(), ..Start::default() };
    engine.start(conn, workflow, options).await?.begin();
    Ok(())
}

/// Starts many runs of one workflow, as fast as sixteen starters can.
pub async fn start_many<W: Workflow + Clone>(
    engine: &Engine,
    pool: &PgPool,
    workflow: &W,
    runs: usize,
) -> Result<(), Failure> {
    let left = AtomicUsize::new(runs);
    let starter = || async {
        let mut conn = pool.acquire().await?;
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            start(engine, &mut conn, workflow).await?;
        }
        Ok::<_, Failure>(())
    };
    futures::future::try_join_all((0..STARTERS).map(|_| starter())).await?;
    Ok(())
}
