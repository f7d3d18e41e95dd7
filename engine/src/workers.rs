//! The working half of a process: an incarnation with its committer, its apalis worker and its loops, and what happens
//! when the lease is lost (begin again as another) or the process stops (drain in order).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apalis_core::error::{BoxDynError, WorkerError};
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use uuid::Uuid;

use crate::berth::{Forsaken, Host};
use crate::claim::Claimed;
use crate::committer::Committer;
use crate::drive::{drive, drive_claimed, forget_nameless_job, let_go_unmoved};
use crate::engine::{Engine, Inner};
use crate::incarnation::Incarnation;
use crate::intake::{Gate, Intake, Slot};
use crate::registry::Registry;
use crate::reins::Reins;
use crate::start::FIRST_EPOCH;
use crate::{admission, operate, tend};

/// How long drives that must stop have to do so.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Everything a drive needs of its process.
pub(crate) struct Crew<E> {
    pub(crate) engine: Arc<Inner>,
    pub(crate) env: Arc<E>,
    pub(crate) registry: Arc<Registry<E>>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) alive: CancellationToken,
    cut: CancellationToken,
    draining: Arc<AtomicBool>,
    reins: Mutex<HashMap<Uuid, Arc<Reins>>>,
    gate: Arc<Gate>,
    forsaken: Mutex<Vec<Forsaken>>,
}

impl<E: Send + Sync + 'static> Crew<E> {
    pub(crate) fn take_reins(&self, run: Uuid, epoch: i64) -> Arc<Reins> {
        let reins = Arc::new(Reins::new(epoch, &self.draining, &self.cut, &self.alive));
        // Whoever drove it here before was fenced off, and may hang.
        if let Some(before) = self.with_reins(|all| all.insert(run, Arc::clone(&reins))) {
            before.take_away();
        }
        reins
    }

    pub(crate) fn ended(&self) -> bool {
        self.alive.is_cancelled()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Only if they are still ours: a drive that was fenced may have a successor in this very process.
    pub(crate) fn drop_reins(&self, run: Uuid, reins: &Arc<Reins>) {
        self.with_reins(|all| {
            if all.get(&run).is_some_and(|held| Arc::ptr_eq(held, reins)) {
                all.remove(&run);
            }
        });
    }

    fn with_reins<T>(&self, f: impl FnOnce(&mut HashMap<Uuid, Arc<Reins>>) -> T) -> T {
        f(&mut self.reins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Passes requests that other processes left on our runs' rows to their drivers.
    async fn read_requests(&self) -> sqlx::Result<()> {
        let mut session = self.engine.db.drives.session().await?;
        let rows = sqlx::query!(
            "select id, request from engine.run where owner = $1 and request is not null",
            self.id
        )
        .fetch_all(&mut *session)
        .await?;
        session.commit().await?;
        for row in rows {
            if let Some(reins) = self.with_reins(|all| all.get(&row.id).cloned()) {
                reins.learn(row.request.as_deref());
            }
        }
        Ok(())
    }

    /// Ends drives whose runs were taken from them. One that hangs would never learn of it, and hold its slot until the
    /// process ends.
    async fn end_what_was_taken(&self) -> sqlx::Result<()> {
        let long = self.engine.settings.lost_step_grace;
        let old: Vec<(Uuid, Arc<Reins>)> = self.with_reins(|all| {
            let old = all.iter().filter(|(_, reins)| reins.is_older_than(long));
            old.map(|(run, reins)| (*run, Arc::clone(reins))).collect()
        });
        if old.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = old.iter().map(|(run, _)| *run).collect();
        let mut session = self.engine.db.drives.session().await?;
        let rows =
            sqlx::query!("select id, epoch from engine.run where owner = $1 and id = any($2)", self.id, &ids)
                .fetch_all(&mut *session)
                .await?;
        session.commit().await?;
        let ours: HashSet<(Uuid, i64)> = rows.into_iter().map(|row| (row.id, row.epoch)).collect();
        for (run, reins) in old.into_iter().filter(|(run, reins)| !ours.contains(&(*run, reins.epoch()))) {
            warn!(%run, "a drive goes on although its run was taken from it; it is ended");
            reins.take_away();
        }
        Ok(())
    }
}

impl<E: Send + Sync + 'static> Crew<E> {
    /// Hands runs to the queue that were committed although their starter gave up their berth.
    async fn look_after_forsaken(&self) -> sqlx::Result<()> {
        let forsaken = std::mem::take(&mut *self.forsaken());
        if forsaken.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = forsaken.iter().map(|f| f.run).collect();
        // Until the query has answered they stay on the list.
        self.forsaken().extend(forsaken);
        let mut session = self.engine.db.drives.session().await?;
        let there = sqlx::query_scalar!("select id from engine.run where id = any($1)", &ids)
            .fetch_all(&mut *session)
            .await?;
        session.commit().await?;
        self.forsaken().retain(|f| !there.contains(&f.run) && f.may_still_commit());
        for run in there {
            let_go_unmoved(self, run, FIRST_EPOCH, 0, None).await;
        }
        Ok(())
    }

    fn forsaken(&self) -> std::sync::MutexGuard<'_, Vec<Forsaken>> {
        self.forsaken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Send + Sync + 'static> Host for Crew<E> {
    fn reserve(&self, kind: &str, version: i32) -> Option<Slot> {
        let ready = !self.ended() && self.registry.find(kind, version).is_some();
        if ready { self.gate.reserve(&self.engine.stats) } else { None }
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn launch(self: Arc<Self>, slot: Slot, claimed: Claimed) {
        tokio::spawn(async move {
            let _slot = slot;
            while_alive(&self.alive, Box::pin(drive_claimed(&self, None, claimed))).await;
        });
    }

    fn forsake(&self, run: Forsaken) {
        self.forsaken().push(run);
        self.engine.admission.leave();
    }
}

/// A running set of workers.
#[derive(Debug)]
pub struct Workers {
    stop: CancellationToken,
    ready: watch::Receiver<bool>,
    supervisor: JoinHandle<()>,
}

impl Workers {
    pub fn start<E: Send + Sync + 'static>(engine: &Engine, env: Arc<E>, registry: Registry<E>) -> Workers {
        engine.knows(registry.kinds());
        let stop = CancellationToken::new();
        let (begun, ready) = watch::channel(false);
        let supervisor =
            tokio::spawn(supervise(Arc::clone(&engine.inner), env, Arc::new(registry), stop.clone(), begun));
        Workers { stop, ready, supervisor }
    }

    /// Returns once this process claims runs.
    pub async fn ready(&mut self) {
        // The supervisor ending first is an answer too.
        let _ = self.ready.wait_for(|ready| *ready).await;
    }

    /// No new claims; drives reach a checkpoint or are cancelled; owners are cleared and jobs put back.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.supervisor.await {
            error!(%error, "the workers' supervisor panicked");
        }
    }
}

async fn supervise<E: Send + Sync + 'static>(
    engine: Arc<Inner>,
    env: Arc<E>,
    registry: Arc<Registry<E>>,
    stop: CancellationToken,
    begun: watch::Sender<bool>,
) {
    while !stop.is_cancelled() {
        match Incarnation::begin(&engine, &registry.kinds()).await {
            Ok(incarnation) => {
                begun.send_replace(true);
                live(&engine, &env, &registry, incarnation, &stop).await;
            }
            Err(error) => {
                warn!(%error, "the workers wait for the database");
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(Duration::from_millis(500)) => {}
                }
            }
        }
    }
}

/// One incarnation from its first claim to its end.
async fn live<E: Send + Sync + 'static>(
    engine: &Arc<Inner>,
    env: &Arc<E>,
    registry: &Arc<Registry<E>>,
    incarnation: Incarnation,
    stop: &CancellationToken,
) {
    let settings = &engine.settings;
    let alive = incarnation.alive.clone();
    let crew = Arc::new(Crew {
        engine: Arc::clone(engine),
        env: Arc::clone(env),
        registry: Arc::clone(registry),
        committer: Arc::new(Committer::start(&engine.db, settings, incarnation.id, &alive, &engine.stats)),
        id: incarnation.id,
        name: incarnation.name.clone(),
        cut: alive.child_token(),
        alive: alive.clone(),
        draining: Arc::new(AtomicBool::new(false)),
        reins: Mutex::default(),
        gate: Arc::new(Gate::new(settings.slots)),
        forsaken: Mutex::default(),
    });
    info!(worker = %incarnation.name, slots = settings.slots, "workers are ready");
    let loops = [tokio::spawn(work(Arc::clone(&crew))), tokio::spawn(admit_loop(Arc::clone(&crew)))];
    tend::apart(Arc::clone(&crew));
    engine.set_host(Some(Arc::clone(&crew) as Arc<dyn Host>));
    tokio::select! {
        () = alive.cancelled() => warn!("this incarnation ended; its drives stop and another begins"),
        () = stop.cancelled() => drain(&crew).await,
    }
    engine.set_host(None);
    crew.cut.cancel();
    wait_for_drives(&crew.gate, LAST_WORDS).await;
    incarnation.end(&engine.db).await;
    for task in loops {
        task.abort();
    }
}

/// A drive that goes on for long after its incarnation ended waits for a server that will not answer; dropped, it gives its
/// connection back to those who come after it.
async fn while_alive(alive: &CancellationToken, drive: impl Future<Output = ()> + Unpin) {
    let ended = async {
        alive.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        () = drive => {}
        () = ended => warn!("a drive outlived its incarnation and is dropped"),
    }
}

async fn drain<E: Send + Sync + 'static>(crew: &Crew<E>) {
    crew.gate.close();
    crew.draining.store(true, Ordering::Release);
    wait_for_drives(&crew.gate, crew.engine.settings.drain).await;
}

async fn wait_for_drives(gate: &Gate, at_most: Duration) {
    let idle = async {
        while gate.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(at_most, idle).await.is_err() {
        warn!(drives = gate.in_flight(), "drives did not reach a checkpoint in time");
    }
}

/// The apalis worker. Should it ever end while the incarnation lives, it is built again.
async fn work<E: Send + Sync + 'static>(crew: Arc<Crew<E>>) {
    while !crew.alive.is_cancelled() {
        if let Err(error) = queue_worker(&crew).await {
            warn!(%error, "the queue worker ended; building it again");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Boxed here, outside any async function, because the compiler cannot see through apalis' layers that it is `Send`.
fn queue_worker<E: Send + Sync + 'static>(
    crew: &Arc<Crew<E>>,
) -> BoxFuture<'static, Result<(), WorkerError>> {
    let engine = &crew.engine;
    let intake = Intake::new(
        engine.db.clone(),
        &engine.settings,
        Arc::clone(&engine.bell),
        Arc::clone(&crew.gate),
        Arc::clone(&engine.stats),
    );
    let (name, crew) = (crew.name.clone(), Arc::clone(crew));
    let handle = move |job: Vec<u8>, id: TaskId| {
        let (crew, slot) = (Arc::clone(&crew), crew.gate.take(&crew.engine.stats));
        // A task of its own: apalis polls all jobs of a worker in one, and a panic must not reach it.
        let driven = tokio::spawn(async move {
            let _slot = slot;
            match std::str::from_utf8(&job).ok().and_then(|text| text.parse().ok()) {
                Some(run) => while_alive(&crew.alive, Box::pin(drive(&crew, id.to_string(), run))).await,
                None => forget_nameless_job(&crew, &id.to_string()).await,
            }
        });
        async move { driven.await.map_err(BoxDynError::from) }
    };
    Box::pin(WorkerBuilder::new(name.as_str()).backend(intake).build(handle).run())
}

/// Admits what is due: when nudged, when the next timer is due, and at least once a second.
async fn admit_loop<E: Send + Sync + 'static>(crew: Arc<Crew<E>>) {
    let engine = &crew.engine;
    let longest = engine.settings.reap_every;
    loop {
        let pause = match engine.db.in_time(admission::admit_due(engine)).await {
            // A full admission may have left more behind; an empty one waits for the next timer.
            Ok((admitted, _, _)) if admitted > 0 => Duration::from_millis(5),
            Ok((_, Some(next), now)) if next > now => (next - now).to_std().unwrap_or(longest).min(longest),
            Ok(_) => longest,
            Err(error) => {
                warn!(%error, "could not admit runs");
                longest
            }
        };
        if let Err(error) = engine.db.in_time(crew.read_requests()).await {
            warn!(%error, "could not read requests");
        }
        if let Err(error) = engine.db.in_time(crew.end_what_was_taken()).await {
            warn!(%error, "could not tell which drives were taken away");
        }
        if let Err(error) = engine.db.in_time(crew.look_after_forsaken()).await {
            warn!(%error, "could not look after runs whose starter went away");
        }
        if let Err(error) = engine.db.in_time(operate::obey_for_the_ownerless(engine)).await {
            warn!(%error, "could not act on requests");
        }
        tokio::select! {
            () = crew.alive.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = engine.admission.nudge.notified() => {}
        }
    }
}
