//! How each workflow and each of its steps fares, counted where it happens and read by `/metrics`. The names are the
//! program's own, so there are never many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use chrono::TimeDelta;

use crate::state::RunState;

/// Upper bounds of the counted durations in seconds: a statement, a person's patience, a pull, a slow retry.
const BOUNDS: [f64; 10] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

/// Durations by bucket; the last one is everything longer.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Durations {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let place = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[place].fetch_add(1, Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// How many fell into each bucket, with its bound.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.into_iter().chain([f64::MAX]);
        bounds.zip(&self.buckets).map(|(bound, count)| (bound, count.load(Relaxed))).collect()
    }

    pub fn seconds(&self) -> f64 {
        self.micros.load(Relaxed) as f64 / 1e6
    }
}

/// A step of a workflow, on its way forth or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepLabel {
    pub workflow: &'static str,
    pub step: &'static str,
    pub undo: bool,
}

/// Values by their labels. What is there once is found with a shared lock.
#[derive(Debug)]
pub struct Tally<K, V>(RwLock<BTreeMap<K, V>>);

impl<K, V> Default for Tally<K, V> {
    fn default() -> Tally<K, V> {
        Tally(RwLock::default())
    }
}

impl<K: Ord + Copy, V: Default> Tally<K, V> {
    fn touch(&self, key: K, change: impl Fn(&V)) {
        if let Some(value) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return change(value);
        }
        change(self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    }

    /// Reads every value, in the order of the labels.
    pub fn read<T>(&self, read: impl Fn(K, &V) -> T) -> Vec<T> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, value)| read(*key, value)).collect()
    }
}

#[derive(Debug, Default)]
pub struct Tallies {
    /// Runs that ended here, by workflow and how.
    pub runs: Tally<(&'static str, &'static str), AtomicU64>,
    /// From a run's first step to its end, by workflow.
    pub run_times: Tally<&'static str, Durations>,
    /// Tries of steps, by how they ended.
    pub tries: Tally<(StepLabel, &'static str), AtomicU64>,
    pub try_times: Tally<StepLabel, Durations>,
}

impl Tallies {
    pub(crate) fn ended(&self, workflow: &'static str, state: RunState, took: TimeDelta) {
        self.runs.touch((workflow, state.as_str()), count);
        self.run_times.touch(workflow, |times| times.add(positive(took)));
    }

    pub(crate) fn tried(&self, of: StepLabel, outcome: &'static str, took: TimeDelta) {
        self.tries.touch((of, outcome), count);
        self.try_times.touch(of, |times| times.add(positive(took)));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// The database's clock may be set back meanwhile.
fn positive(took: TimeDelta) -> Duration {
    took.to_std().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_once_in_the_first_bucket_that_holds_it() {
        let times = Durations::default();
        for millis in [5, 6, 3_600_000] {
            times.add(Duration::from_millis(millis));
        }
        let counted: Vec<u64> = times.buckets().into_iter().map(|(_, count)| count).collect();
        assert_eq!(counted, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!((times.seconds() - 3600.011).abs() < 1e-6);
    }

    #[test]
    fn labels_are_counted_apart() {
        let tallies = Tallies::default();
        let step = |undo| StepLabel { workflow: "w", step: "s", undo };
        for (of, outcome) in [(step(false), "succeeded"), (step(false), "succeeded"), (step(true), "retry")] {
            tallies.tried(of, outcome, TimeDelta::milliseconds(-1));
        }
        let counted = tallies.tries.read(|(of, outcome), count| (of.undo, outcome, count.load(Relaxed)));
        assert_eq!(counted, [(false, "succeeded", 2), (true, "retry", 1)]);
    }
}
