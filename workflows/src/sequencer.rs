//! Numbers events, in every process that serves. It is a loop and not a run: runs tell events, and whoever numbers them
//! must not tell any itself.
//!
//! It looks when something was written here, and now and then for what others wrote and left. Two of them do no harm:
//! the order is kept by the counter of each project, not by who holds the pen. Nothing rests on a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use domain::EventType;
use engine::{Engine, Pool};
use store::outbox::{self, Numbered};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;
use uuid::Uuid;

/// Each process numbers what it wrote; only what a dead one left waits this long.
const FLOOR: Duration = Duration::from_secs(1);
/// What is written within this time is numbered together.
const GAP: Duration = Duration::from_millis(25);
/// The most that one transaction numbers, so that a project's counter is never held for long.
const BATCH: i64 = 1000;

/// How writers and readers of events in one process hear of each other. Clones share it.
#[derive(Clone, Debug)]
pub struct Hints {
    written: Arc<Notify>,
    numbered: watch::Sender<()>,
    /// How many events of each type this process has numbered.
    told: Arc<[AtomicU64]>,
    /// How many it passed on, and how often it could not.
    relayed: Arc<[AtomicU64; 2]>,
}

impl Default for Hints {
    fn default() -> Hints {
        let told = EventType::all().map(|_| AtomicU64::new(0)).collect();
        Hints { written: Arc::default(), numbered: watch::Sender::new(()), told, relayed: Arc::default() }
    }
}

impl Hints {
    /// After a commit that may have told something.
    pub fn written(&self) {
        self.written.notify_one();
    }

    /// Changes whenever this process has numbered events.
    pub fn numbered(&self) -> watch::Receiver<()> {
        self.numbered.subscribe()
    }

    /// How many events of each type this process has numbered.
    pub fn told(&self) -> impl Iterator<Item = (EventType, u64)> {
        EventType::all().zip(self.told.iter()).map(|(kind, count)| (kind, count.load(Relaxed)))
    }

    /// How many events this process has passed on, and how often it could not.
    pub fn relays(&self) -> [u64; 2] {
        self.relayed.each_ref().map(|count| count.load(Relaxed))
    }

    pub(crate) fn relayed(&self, events: u64) {
        self.relayed[0].fetch_add(events, Relaxed);
    }

    pub(crate) fn not_relayed(&self) {
        self.relayed[1].fetch_add(1, Relaxed);
    }

    fn count(&self, numbered: &[Numbered]) {
        for one in numbered {
            if let Some(place) = EventType::all().position(|kind| kind.as_str() == one.kind) {
                self.told[place].fetch_add(one.events.unsigned_abs(), Relaxed);
            }
        }
    }
}

pub struct Sequencer {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl Sequencer {
    pub fn start(engine: &Engine, hints: &Hints) -> Sequencer {
        let closing = CancellationToken::new();
        let task = tokio::spawn(sequence(engine.clone(), hints.clone(), closing.clone()));
        Sequencer { closing, task }
    }

    /// What it has not numbered yet, another process does, or the next start.
    pub async fn stop(self) {
        self.closing.cancel();
        if let Err(error) = self.task.await {
            debug!(%error, "the sequencer ended early");
        }
    }
}

async fn sequence(engine: Engine, hints: Hints, closing: CancellationToken) {
    let mut rests = engine.rests();
    loop {
        match number_visible(engine.pool()).await {
            Ok(none) if none.is_empty() => {}
            Ok(numbered) => {
                hints.count(&numbered);
                hints.numbered.send_replace(());
            }
            Err(error) => debug!(%error, "events wait for their numbers"),
        }
        tokio::select! {
            () = closing.cancelled() => return,
            () = sleep(FLOOR) => continue,
            () = hints.written.notified() => {}
            // A run that came to rest or ended has told what it had to tell.
            _ = rests.recv() => {}
        }
        sleep(GAP).await;
        rests = rests.resubscribe();
    }
}

/// Numbers everything that is visible now. Answers how many events that were; what is held up waits for the next time.
pub async fn number_all(pool: &Pool) -> sqlx::Result<i64> {
    Ok(number_visible(pool).await?.iter().map(|one| one.events).sum())
}

async fn number_visible(pool: &Pool) -> sqlx::Result<Vec<Numbered>> {
    let mut tx = pool.begin().await?;
    let projects = outbox::waiting(&mut tx).await?;
    tx.rollback().await?;
    let mut all = Vec::new();
    for project in projects {
        // Somebody may hold the counter of one; that is nobody else's business.
        if let Err(error) = number_project(pool, project, &mut all).await {
            debug!(%project, %error, "events wait for their numbers");
        }
    }
    Ok(all)
}

async fn number_project(pool: &Pool, project: Uuid, all: &mut Vec<Numbered>) -> sqlx::Result<()> {
    loop {
        let mut tx = pool.begin().await?;
        let found = outbox::number(&mut tx, project, BATCH).await?;
        tx.commit().await?;
        let events: i64 = found.iter().map(|one| one.events).sum();
        all.extend(found);
        if events < BATCH {
            return Ok(());
        }
    }
}
