//! Counters and one gauge of trouble, cheap enough to touch on every checkpoint; `/metrics` reads them.
//!
//! The gauge is the age of the oldest write that waits for its answer. It rises when the database is slow just as when it
//! is away, and falls the moment that write is answered; how full a queue is would tell neither.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::tally::Tallies;

/// Claims whose time is remembered.
const RECENT: usize = 1024;

#[derive(Debug)]
pub struct Stats {
    born: Instant,
    pub commits: AtomicU64,
    pub checkpoints: AtomicU64,
    pub contentions: AtomicU64,
    pub splits: AtomicU64,
    pub drives: AtomicU64,
    pub drives_in_flight: AtomicI64,
    pub fenced: AtomicU64,
    pub runs_finished: AtomicU64,
    pub steps_finished: AtomicU64,
    pub steps_failed: AtomicU64,
    pub runs_reaped: AtomicU64,
    pub processes_reaped: AtomicU64,
    pub jobs_fetched: AtomicU64,
    pub fetches: AtomicU64,
    pub schedules_fired: AtomicU64,
    pub promises_broken: AtomicU64,
    /// The same by workflow and step.
    pub tallies: Tallies,
    /// What the latest claims took, in microseconds, around and around; 0 where there was none yet.
    claims: [AtomicU32; RECENT],
    claimed: AtomicUsize,
    /// The writes that wait for an answer: since when, and which.
    unanswered: Mutex<BTreeSet<(Instant, u64)>>,
    writes: AtomicU64,
    /// Milliseconds after `born` at which the queue stopped answering; 0 while it does.
    queue_silent: AtomicU64,
}

/// A write that waits for its answer; dropped, it has one.
#[derive(Debug)]
pub(crate) struct Unanswered<'a> {
    stats: &'a Stats,
    key: (Instant, u64),
}

impl Unanswered<'_> {
    /// The same, where so many needed no answer of the database's any more.
    pub(crate) fn some_answered(&mut self, many: usize) {
        if many > 0 {
            self.one_answered();
        }
    }

    /// One of several was answered; the next waits from now on.
    pub(crate) fn one_answered(&mut self) {
        let mut all = self.stats.unanswered();
        all.remove(&self.key);
        self.key.0 = Instant::now();
        all.insert(self.key);
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.stats.unanswered().remove(&self.key);
    }
}

impl Default for Stats {
    fn default() -> Stats {
        Stats {
            born: Instant::now(),
            commits: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            contentions: AtomicU64::new(0),
            splits: AtomicU64::new(0),
            drives: AtomicU64::new(0),
            drives_in_flight: AtomicI64::new(0),
            fenced: AtomicU64::new(0),
            runs_finished: AtomicU64::new(0),
            steps_finished: AtomicU64::new(0),
            steps_failed: AtomicU64::new(0),
            runs_reaped: AtomicU64::new(0),
            processes_reaped: AtomicU64::new(0),
            jobs_fetched: AtomicU64::new(0),
            fetches: AtomicU64::new(0),
            schedules_fired: AtomicU64::new(0),
            promises_broken: AtomicU64::new(0),
            tallies: Tallies::default(),
            claims: [const { AtomicU32::new(0) }; RECENT],
            claimed: AtomicUsize::new(0),
            unanswered: Mutex::default(),
            writes: AtomicU64::new(0),
            queue_silent: AtomicU64::new(0),
        }
    }
}

impl Stats {
    pub(crate) fn wrote(&self, rows: usize) {
        self.commits.fetch_add(1, Relaxed);
        self.checkpoints.fetch_add(rows as u64, Relaxed);
        self.queue_answers();
    }

    pub(crate) fn contended(&self) {
        self.contentions.fetch_add(1, Relaxed);
    }

    pub(crate) fn split(&self) {
        self.splits.fetch_add(1, Relaxed);
    }

    pub(crate) fn claimed(&self, took: Duration) {
        let place = self.claimed.fetch_add(1, Relaxed) % RECENT;
        self.claims[place].store(u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1), Relaxed);
    }

    /// What the latest claims took, each with the journals it read; in no order.
    pub fn recent_claims(&self) -> Vec<Duration> {
        let all = self.claims.iter().map(|micros| micros.load(Relaxed)).filter(|micros| *micros > 0);
        all.map(|micros| Duration::from_micros(u64::from(micros))).collect()
    }

    /// Held by whoever sends something to the database and will not give up before it is answered.
    pub(crate) fn write_begins(&self) -> Unanswered<'_> {
        let key = (Instant::now(), self.writes.fetch_add(1, Relaxed));
        self.unanswered().insert(key);
        Unanswered { stats: self, key }
    }

    pub(crate) fn queue_answers_not(&self) {
        let now = self.born.elapsed().as_millis().max(1) as u64;
        let _ = self.queue_silent.compare_exchange(0, now, Relaxed, Relaxed);
    }

    pub(crate) fn queue_answers(&self) {
        self.queue_silent.store(0, Relaxed);
    }

    /// How long the oldest write has waited for its answer.
    pub(crate) fn writes_pressed_for(&self) -> Option<Duration> {
        self.unanswered().first().map(|(since, _)| since.elapsed())
    }

    /// How long the database has not kept up with this process.
    pub fn pressed_for(&self) -> Option<Duration> {
        let silent = Some(self.queue_silent.load(Relaxed)).filter(|since| *since > 0);
        let silent = silent.map(|since| self.born.elapsed().saturating_sub(Duration::from_millis(since)));
        silent.max(self.writes_pressed_for())
    }

    fn unanswered(&self) -> MutexGuard<'_, BTreeSet<(Instant, u64)>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
