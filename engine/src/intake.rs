//! The queue as apalis sees it: a backend over apalis-postgres' tables, with a gate in front.
//!
//! The stock storage fetches whenever it is polled, beats and acknowledges only between fetches, and ends its worker on
//! any database error. This one fetches only when there is room and a reason (the bell, or the poll interval), never
//! takes more jobs than there are free slots, and outlives the database. There is nothing to acknowledge: a drive's
//! last checkpoint deletes its job.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::queue::Queue;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::layers::Identity;
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::worker::context::WorkerContext;
use apalis_postgres::PostgresStorage;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use sqlx::PgPool;
use tokio::time::Sleep;
use tracing::warn;

use crate::admission::QUEUE;
use crate::database::Database;
use crate::settings::Settings;
use crate::stats::Stats;

/// apalis' own tables; run before our migrations, which switch its NOTIFY trigger off.
pub async fn setup_queue(pool: &PgPool) -> Result<(), apalis_postgres::Error> {
    PostgresStorage::setup(pool).await
}

/// Rung when a job was queued in this process.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    waker: AtomicWaker,
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Registers first and looks second, so that no ring falls between.
    fn heard(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.rung.swap(false, Ordering::AcqRel)
    }
}

/// Counts free slots and wakes the intake when one is given back.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: usize,
    taken: AtomicUsize,
    closed: AtomicBool,
    waker: AtomicWaker,
}

/// One running drive.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Gate>, Arc<Stats>);

impl Gate {
    pub(crate) fn new(slots: usize) -> Gate {
        Gate { slots, taken: AtomicUsize::new(0), closed: AtomicBool::new(false), waker: AtomicWaker::new() }
    }

    /// The slot of a job that was fetched: it was counted then.
    pub(crate) fn take(self: &Arc<Gate>, stats: &Arc<Stats>) -> Slot {
        Slot(Arc::clone(self), Arc::clone(stats))
    }

    /// A slot for a run that comes by no job, if one is free.
    pub(crate) fn reserve(self: &Arc<Gate>, stats: &Arc<Stats>) -> Option<Slot> {
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        let room = |taken: usize| (taken < self.slots).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        stats.drives_in_flight.fetch_add(1, Ordering::Relaxed);
        Some(self.take(stats))
    }

    /// Slots for jobs that are about to be fetched: nobody else may have them meanwhile. Only half of what is free, because what
    /// is started here and now finds no room in the others, has to go through the queue, and is one more reason to fetch.
    fn hold(&self, most: usize) -> usize {
        let mut held = 0;
        let _ = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            held = self.slots.saturating_sub(taken).div_ceil(2).min(most);
            Some(taken + held)
        });
        held
    }

    fn give_back(&self, slots: usize) {
        self.taken.fetch_sub(slots, Ordering::AcqRel);
    }

    /// No more jobs are fetched.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    fn free(&self, cx: &Context<'_>) -> usize {
        self.waker.register(cx.waker());
        if self.closed.load(Ordering::Acquire) { 0 } else { self.slots.saturating_sub(self.in_flight()) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.1.drives_in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.waker.wake();
    }
}

type Fetched = sqlx::Result<Vec<Task<Vec<u8>>>>;

pub(crate) struct Intake {
    db: Database,
    queue: Queue,
    batch: usize,
    /// How many jobs the fetch under way asked for; it holds a slot for each.
    asked: usize,
    poll_every: Duration,
    pressure_after: Duration,
    bell: Arc<Bell>,
    gate: Arc<Gate>,
    stats: Arc<Stats>,
    fetching: Option<BoxFuture<'static, Fetched>>,
    buffer: VecDeque<Task<Vec<u8>>>,
    timer: Pin<Box<Sleep>>,
    hungry: bool,
}

impl Intake {
    pub(crate) fn new(
        db: Database,
        settings: &Settings,
        bell: Arc<Bell>,
        gate: Arc<Gate>,
        stats: Arc<Stats>,
    ) -> Intake {
        Intake {
            db,
            queue: Queue::from(QUEUE),
            batch: settings.batch,
            asked: 0,
            poll_every: settings.poll_every,
            pressure_after: settings.pressure_after,
            bell,
            gate,
            stats,
            fetching: None,
            buffer: VecDeque::new(),
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            hungry: true,
        }
    }

    /// Looks at every reason to fetch until each says "not now", so that each has left its waker.
    fn listen(&mut self, cx: &mut Context<'_>) {
        self.hungry |= self.bell.heard(cx);
        while self.timer.as_mut().poll(cx).is_ready() {
            self.hungry = true;
            self.rearm(self.poll_every);
        }
    }

    /// What was claimed waits for the database already; the timer looks again.
    fn pressed(&self) -> bool {
        self.stats.writes_pressed_for().is_some_and(|long| long > self.pressure_after)
    }

    fn rearm(&mut self, delay: Duration) {
        self.timer.as_mut().reset(tokio::time::Instant::now() + delay);
    }

    fn fetch(&mut self, worker: &WorkerContext, room: usize) {
        self.asked = self.gate.hold(room.min(self.batch));
        let (db, worker, limit) = (self.db.clone(), worker.name().to_owned(), self.asked as i64);
        self.stats.fetches.fetch_add(1, Ordering::Relaxed);
        self.fetching = Some(Box::pin(async move { db.in_time(fetch(&db, &worker, limit)).await }));
    }

    fn received(&mut self, fetched: Fetched) {
        match fetched {
            Ok(tasks) => {
                // As many as asked for means there may be more behind them.
                self.hungry |= tasks.len() >= self.asked;
                self.stats.queue_answers();
                self.stats.drives_in_flight.fetch_add(tasks.len() as i64, Ordering::Relaxed);
                self.stats.jobs_fetched.fetch_add(tasks.len() as u64, Ordering::Relaxed);
                self.gate.give_back(self.asked - tasks.len());
                self.buffer.extend(tasks);
            }
            Err(error) => {
                warn!(%error, "could not fetch jobs; trying again shortly");
                self.gate.give_back(self.asked);
                self.stats.queue_answers_not();
                self.hungry = false;
                self.rearm(Duration::from_millis(500));
            }
        }
    }
}

/// apalis-postgres' fetch, as a statement of our own: its SQL function is planned anew on every call.
async fn fetch(db: &Database, worker: &str, limit: i64) -> Fetched {
    let mut session = db.queue.session().await?;
    let rows = sqlx::query!(
        "with picked as (
             select id from apalis.jobs where job_type = $2 and run_at < now()
               and (status = 'Pending' or (status = 'Failed' and attempts < max_attempts))
             order by priority desc, run_at limit $3 for update skip locked
         )
         update apalis.jobs j set status = 'Queued', lock_by = $1, lock_at = now()
         from picked where j.id = picked.id returning j.id, j.job",
        worker,
        QUEUE,
        limit
    )
    .fetch_all(&mut *session)
    .await?;
    session.commit().await?;
    Ok(rows
        .into_iter()
        .filter_map(|r| Some(TaskBuilder::new(r.job).task_id(r.id.parse().ok()?).build()))
        .collect())
}

impl Drop for Intake {
    fn drop(&mut self) {
        // Fetched but never begun: the slots are free again, the jobs go back when the incarnation ends.
        let held = if self.fetching.is_some() { self.asked } else { 0 };
        self.gate.give_back(self.buffer.len() + held);
        self.stats.drives_in_flight.fetch_sub(self.buffer.len() as i64, Ordering::Relaxed);
    }
}

impl Backend for Intake {
    type Task = Task<Vec<u8>>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        loop {
            if let Some(task) = self.buffer.pop_front() {
                return Poll::Ready(Some(Ok(task)));
            }
            if let Some(fetching) = &mut self.fetching {
                match fetching.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(fetched) => {
                        self.fetching = None;
                        self.received(fetched);
                        continue;
                    }
                }
            }
            self.listen(cx);
            let room = if self.pressed() { 0 } else { self.gate.free(cx) };
            if !self.hungry || room == 0 {
                return Poll::Pending;
            }
            self.hungry = false;
            self.fetch(worker, room);
        }
    }

    fn poll_close(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        // Jobs fetched but not begun are put back with everything else when the incarnation ends.
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for Intake {
    type Args = Vec<u8>;
    type Id = ulid::Ulid;
    type Kind = Ephemeral;
    type Config = Queue;
    type Layer = Identity;

    fn config(&self) -> &Queue {
        &self.queue
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
