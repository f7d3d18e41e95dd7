//! When to try again: exponential delays with full jitter, kept in the database so that a crash forgets nothing.

use std::time::Duration;

use rand::Rng;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Tries in all, the first one included.
    pub attempts: u32,
    pub first: Duration,
    pub longest: Duration,
}

impl Retry {
    /// Five tries within a quarter of a minute.
    pub const STANDARD: Retry = Retry::times(5);
    pub const NEVER: Retry = Retry::times(1);

    pub const fn times(attempts: u32) -> Retry {
        Retry { attempts, first: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }

    pub const fn starting_at(mut self, first: Duration) -> Retry {
        self.first = first;
        self
    }

    pub const fn at_most(mut self, longest: Duration) -> Retry {
        self.longest = longest;
        self
    }

    /// The longest the wait after `used` tries may be.
    pub fn ceiling(&self, used: u32) -> Duration {
        let doublings = used.saturating_sub(1).min(20);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// A uniformly random wait up to the ceiling, so that many runs hit by one outage do not come back together.
    pub fn delay(&self, used: u32) -> Duration {
        self.ceiling(used).mul_f64(rand::rng().random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_and_stop_at_the_longest() {
        let rule = Retry::times(9).starting_at(Duration::from_secs(1)).at_most(Duration::from_secs(10));
        let ceilings: Vec<u64> = (1..=6).map(|used| rule.ceiling(used).as_secs()).collect();
        assert_eq!(ceilings, [1, 2, 4, 8, 10, 10]);
        assert_eq!(rule.ceiling(u32::MAX), Duration::from_secs(10));
    }

    #[test]
    fn delays_use_the_whole_range_and_never_pass_the_ceiling() {
        let rule = Retry::STANDARD;
        let delays: Vec<Duration> = (0..1000).map(|_| rule.delay(4)).collect();
        assert!(delays.iter().all(|d| *d <= rule.ceiling(4)));
        assert!(delays.iter().any(|d| *d < rule.ceiling(4) / 4));
        assert!(delays.iter().any(|d| *d > rule.ceiling(4) * 3 / 4));
    }
}
