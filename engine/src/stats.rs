//! Counters and one gauge of trouble, cheap enough to touch on every checkpoint; `/metrics` reads them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
    /// Milliseconds after `born` at which the lanes, and the queue, stopped keeping up; 0 while they do.
    lanes_pressed: AtomicU64,
    queue_pressed: AtomicU64,
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
            lanes_pressed: AtomicU64::new(0),
            queue_pressed: AtomicU64::new(0),
        }
    }
}

impl Stats {
    pub(crate) fn wrote(&self, rows: usize) {
        self.commits.fetch_add(1, Relaxed);
        self.checkpoints.fetch_add(rows as u64, Relaxed);
        self.lanes_pressed.store(0, Relaxed);
    }

    pub(crate) fn contended(&self) {
        self.contentions.fetch_add(1, Relaxed);
    }

    pub(crate) fn split(&self) {
        self.splits.fetch_add(1, Relaxed);
    }

    pub(crate) fn pressure_begins(&self) {
        self.press(&self.lanes_pressed);
    }

    pub(crate) fn queue_answers_not(&self) {
        self.press(&self.queue_pressed);
    }

    pub(crate) fn queue_answers(&self) {
        self.queue_pressed.store(0, Relaxed);
        // An idle process writes nothing that would show the database is back; the queue's answer shows it too.
        if self.drives_in_flight.load(Relaxed) == 0 {
            self.lanes_pressed.store(0, Relaxed);
        }
    }

    fn press(&self, since: &AtomicU64) {
        let now = self.born.elapsed().as_millis().max(1) as u64;
        let _ = since.compare_exchange(0, now, Relaxed, Relaxed);
    }

    /// How long the database has not kept up with this process.
    pub fn pressed_for(&self) -> Option<Duration> {
        let earliest = [&self.lanes_pressed, &self.queue_pressed]
            .into_iter()
            .map(|since| since.load(Relaxed))
            .filter(|since| *since > 0)
            .min()?;
        Some(self.born.elapsed().saturating_sub(Duration::from_millis(earliest)))
    }
}
