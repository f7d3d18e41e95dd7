//! The database's clock as a driver sees it: read once at the claim, carried on by the process's monotonic clock.
//! Timers are compared by the database itself; this only stamps rows and computes wake-up times.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};

#[derive(Debug, Clone, Copy)]
pub(crate) struct DbClock {
    read: DateTime<Utc>,
    at: Instant,
}

impl DbClock {
    pub(crate) fn read_at(read: DateTime<Utc>) -> DbClock {
        DbClock { read, at: Instant::now() }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.after(Duration::ZERO)
    }

    pub(crate) fn after(&self, delay: Duration) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.at.elapsed().saturating_add(delay)).unwrap_or(TimeDelta::MAX);
        self.read.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}
