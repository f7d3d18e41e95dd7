//! Counting time: what a meter makes of looks at a running thing, and which billing window a moment belongs to.
//!
//! A second counts only between two looks that both showed the thing running, and not if the looks are too far apart to
//! know. Every second is counted at most once: `metered_until` only moves on.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

/// Seconds that an instance ran.
pub const SESSION_SECONDS: &str = "session_seconds";
/// The same, once for each GPU it held.
pub const GPU_SECONDS: &str = "gpu_seconds";
/// Seconds that an allocation was held, once for each of its GPUs; an allocation without GPUs counts as one.
pub const ALLOCATION_SECONDS: &str = "allocation_seconds";

/// The most that one record may say.
pub const MOST: i64 = 1_000_000_000_000;
/// So many windows are settled by one look at most, however long ago the last one was; the next goes on from there.
pub const WINDOWS_A_LOOK: i64 = 120;

/// What the usage is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// Capacity that was held, used or not.
    Allocation,
    /// What an instance did with it.
    AppRuntime,
}

impl UsageSource {
    pub const ALL: [UsageSource; 2] = [UsageSource::Allocation, UsageSource::AppRuntime];

    pub const fn as_str(self) -> &'static str {
        match self {
            UsageSource::Allocation => "allocation",
            UsageSource::AppRuntime => "app_runtime",
        }
    }
}

impl fmt::Display for UsageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for UsageSource {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<UsageSource, UnknownWord> {
        let named = UsageSource::ALL.into_iter().find(|source| source.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a source of usage"))
    }
}

/// From `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

impl Window {
    /// Windows lie end to end from the beginning of time, so that everybody cuts it at the same places.
    pub fn of(moment: DateTime<Utc>, width_seconds: i64) -> Window {
        let width = width_seconds.max(1);
        let start = moment.timestamp().div_euclid(width) * width;
        Window { start: at(start), end: at(start + width) }
    }
}

/// Whole seconds only: what is left of a second is counted with the next look.
fn whole(moment: DateTime<Utc>) -> DateTime<Utc> {
    at(moment.timestamp())
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    pub metered_until: DateTime<Utc>,
    /// Whether it ran at the last look.
    pub running: bool,
    /// What was counted of the present window.
    pub pending: Option<Pending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub from: DateTime<Utc>,
    pub seconds: i64,
    pub gpu_seconds: i64,
}

/// What one look showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub at: DateTime<Utc>,
    pub running: bool,
    pub gpus: i64,
}

/// What was counted of one window: a record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub window: Window,
    pub from: DateTime<Utc>,
    pub seconds: i64,
    pub gpu_seconds: i64,
}

impl Meter {
    pub fn open(now: DateTime<Utc>) -> Meter {
        Meter { metered_until: whole(now), running: true, pending: None }
    }

    /// Settles the time up to the look, and answers what is complete. `trusts` is the longest time between two looks of
    /// which anything is believed. A clock that went back settles nothing; a meter that is far behind is moved on by
    /// [`WINDOWS_A_LOOK`], and still [`Meter::is_behind`].
    pub fn look(&mut self, look: Look, trusts: Option<TimeDelta>, width_seconds: i64) -> Vec<Counted> {
        let mut complete = Vec::new();
        let mut until = whole(look.at);
        let counts = self.running && look.running;
        let believed = trusts.is_none_or(|longest| until - self.metered_until <= longest);
        self.running = look.running;
        if until <= self.metered_until {
            return complete;
        }
        let mut from = until;
        if counts && believed {
            from = self.metered_until;
            until = until.min(from + TimeDelta::seconds(width_seconds.max(1) * WINDOWS_A_LOOK));
        }
        while from < until {
            self.leave_window_before(from, width_seconds, &mut complete);
            let end = Window::of(from, width_seconds).end.min(until);
            self.add(from, (end - from).num_seconds(), look.gpus);
            from = end;
        }
        self.leave_window_before(until, width_seconds, &mut complete);
        self.metered_until = until;
        complete
    }

    /// Whether there is time before the moment that no look has settled.
    pub fn is_behind(&self, moment: DateTime<Utc>) -> bool {
        self.metered_until < whole(moment)
    }

    /// What is left when nothing more is to come.
    pub fn close(&mut self, width_seconds: i64) -> Option<Counted> {
        self.pending.take().map(|pending| counted(pending, width_seconds))
    }

    fn add(&mut self, from: DateTime<Utc>, seconds: i64, gpus: i64) {
        let so_far = self.pending.unwrap_or(Pending { from, seconds: 0, gpu_seconds: 0 });
        self.pending = Some(Pending {
            from: so_far.from,
            seconds: so_far.seconds + seconds,
            gpu_seconds: so_far.gpu_seconds + seconds * gpus,
        });
    }

    fn leave_window_before(&mut self, moment: DateTime<Utc>, width: i64, complete: &mut Vec<Counted>) {
        if let Some(pending) = self.pending.filter(|pending| Window::of(pending.from, width).end <= moment) {
            complete.push(counted(pending, width));
            self.pending = None;
        }
    }
}

fn counted(pending: Pending, width: i64) -> Counted {
    let Pending { from, seconds, gpu_seconds } = pending;
    Counted { window: Window::of(from, width), from, seconds, gpu_seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUND: Option<TimeDelta> = Some(TimeDelta::seconds(60));

    fn sees(seconds: i64, running: bool) -> Look {
        Look { at: at(seconds), running, gpus: 2 }
    }

    fn told(counted: &[Counted]) -> Vec<(i64, i64, i64)> {
        counted.iter().map(|one| (one.window.start.timestamp(), one.seconds, one.gpu_seconds)).collect()
    }

    #[test]
    fn a_window_is_told_once_it_has_passed_and_the_rest_when_the_meter_closes() {
        let mut meter = Meter::open(at(50));
        assert_eq!(told(&meter.look(sees(58, true), BOUND, 60)), []);
        assert_eq!(told(&meter.look(sees(68, true), BOUND, 60)), [(0, 10, 20)]);
        let last = meter.close(60).unwrap();
        assert_eq!(told(&[last]), [(60, 8, 16)]);
        assert_eq!(meter.close(60), None);
    }

    #[test]
    fn what_nobody_saw_running_at_both_ends_is_not_counted() {
        let mut meter = Meter::open(at(0));
        meter.look(sees(10, true), BOUND, 3600);
        meter.look(sees(20, false), BOUND, 3600);
        meter.look(sees(30, true), BOUND, 3600);
        meter.look(sees(40, true), BOUND, 3600);
        assert_eq!(meter.close(3600).unwrap().seconds, 20);
    }

    #[test]
    fn a_gap_that_is_too_long_to_know_of_is_not_counted_and_one_that_is_not_is() {
        let mut meter = Meter::open(at(0));
        meter.look(sees(60, true), BOUND, 3600);
        meter.look(sees(121, true), BOUND, 3600);
        meter.look(sees(131, true), BOUND, 3600);
        assert_eq!(meter.close(3600).unwrap().seconds, 70);
    }

    #[test]
    fn a_meter_that_is_far_behind_catches_up_piece_by_piece_and_counts_the_same() {
        let (mut meter, mut records, mut looks) = (Meter::open(at(30)), Vec::new(), 0);
        let now = at(30 + 60 * (2 * WINDOWS_A_LOOK + 5));
        while meter.is_behind(now) {
            let told = meter.look(Look { at: now, running: true, gpus: 2 }, None, 60);
            assert!(told.len() <= usize::try_from(WINDOWS_A_LOOK).unwrap() + 1, "{}", told.len());
            records.extend(told);
            looks += 1;
        }
        records.extend(meter.close(60));
        assert_eq!(looks, 3);
        assert_eq!(records.iter().map(|one| one.seconds).sum::<i64>(), 60 * (2 * WINDOWS_A_LOOK + 5));
        let mut lost = Meter { running: false, ..Meter::open(at(0)) };
        assert_eq!(lost.look(Look { at: now, running: true, gpus: 2 }, None, 60), []);
        assert!(!lost.is_behind(now), "what nobody saw running is settled at once: it does not count");
    }

    #[test]
    fn a_clock_that_goes_back_counts_nothing_twice() {
        let mut meter = Meter::open(at(0));
        meter.look(sees(50, true), BOUND, 3600);
        meter.look(sees(20, true), BOUND, 3600);
        meter.look(sees(55, true), BOUND, 3600);
        assert_eq!(meter.close(3600).unwrap().seconds, 55);
    }

    proptest! {
        /// However the looks fall, the records are what a stopwatch that looks every second would have counted.
        #[test]
        fn records_add_up_to_the_seconds_between_looks_that_agree(
            steps in prop::collection::vec((-30_i64..120, any::<bool>()), 1..40),
            width in 1_i64..200,
        ) {
            let mut meter = Meter::open(at(1000));
            let (mut now, mut settled, mut ran, mut expected) = (1000, 1000, true, 0);
            let mut records = Vec::new();
            for (step, running) in steps {
                now += step;
                records.extend(meter.look(sees(now, running), BOUND, width));
                if now > settled {
                    if ran && running && now - settled <= 60 {
                        expected += now - settled;
                    }
                    settled = now;
                }
                ran = running;
            }
            records.extend(meter.close(width));
            prop_assert_eq!(records.iter().map(|one| one.seconds).sum::<i64>(), expected);
            let mut starts: Vec<i64> = records.iter().map(|one| one.from.timestamp()).collect();
            for one in &records {
                prop_assert!(one.window.start <= one.from && one.from < one.window.end);
                prop_assert!(one.seconds <= width && one.gpu_seconds == one.seconds * 2);
            }
            starts.dedup();
            prop_assert_eq!(starts.len(), records.len(), "no two records begin at the same second");
        }
    }
}
