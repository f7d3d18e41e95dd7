//! How often somebody may ask: so many requests a minute, counted from the first one. The count is this process's own;
//! with several behind a balancer everybody gets the limit from each. However many come, what is remembered is bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const WINDOW: Duration = Duration::from_secs(60);
/// So many are told apart within a minute; the others share one window.
const MANY: usize = 10_000;
/// Looking for those whose minute is over takes longer the more there are, so it is not done for every request.
const SWEEP: Duration = Duration::from_secs(1);

pub(crate) struct Limiter<K>(Mutex<Windows<K>>);

struct Windows<K> {
    of: HashMap<K, Window>,
    of_the_rest: Option<Window>,
    swept: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Window {
    began: Instant,
    used: u32,
    /// How many were refused in the window before.
    missed: u32,
}

/// What is left of somebody's minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    limit: u32,
    remaining: u32,
    pub(crate) resets_in: u32,
    pub(crate) exceeded: bool,
    /// How many were refused in the minute before this one.
    pub(crate) missed: u32,
}

impl<K> Default for Limiter<K> {
    fn default() -> Limiter<K> {
        Limiter(Mutex::new(Windows { of: HashMap::new(), of_the_rest: None, swept: None }))
    }
}

impl<K: Hash + Eq> Limiter<K> {
    pub(crate) fn take(&self, who: K, limit: u32) -> Allowance {
        self.take_at(Instant::now(), who, limit)
    }

    /// What was asked turned out to need no allowance.
    pub(crate) fn give_back(&self, who: &K) {
        let mut windows = self.windows();
        let Windows { of, of_the_rest, .. } = &mut *windows;
        if let Some(window) = of.get_mut(who).or(of_the_rest.as_mut()) {
            window.used = window.used.saturating_sub(1);
        }
    }

    fn take_at(&self, now: Instant, who: K, limit: u32) -> Allowance {
        let mut windows = self.windows();
        let window = windows.find(now, who);
        if now.duration_since(window.began) >= WINDOW {
            *window = Window { began: now, used: 0, missed: window.used.saturating_sub(limit) };
        }
        let exceeded = window.used >= limit;
        window.used = window.used.saturating_add(1);
        let left = WINDOW.saturating_sub(now.duration_since(window.began));
        let resets_in = u32::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        let remaining = limit.saturating_sub(window.used);
        Allowance { limit, remaining, resets_in, exceeded, missed: window.missed }
    }

    fn windows(&self) -> MutexGuard<'_, Windows<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Windows<K> {
    fn find(&mut self, now: Instant, who: K) -> &mut Window {
        let fresh = Window { began: now, used: 0, missed: 0 };
        let full = self.of.len() >= MANY;
        if full && self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            self.of.retain(|_, window| now.duration_since(window.began) < WINDOW);
            self.swept = Some(now);
        }
        if self.of.len() >= MANY && !self.of.contains_key(&who) {
            return self.of_the_rest.get_or_insert(fresh);
        }
        self.of.entry(who).or_insert(fresh)
    }
}

impl Allowance {
    /// The `RateLimit` fields of draft-ietf-httpapi-ratelimit-headers, for the policy of this name.
    pub(crate) fn tell(self, policy: &str, headers: &mut HeaderMap) {
        let rule = format!("\"{policy}\";q={};w={}", self.limit, WINDOW.as_secs());
        let state = format!("\"{policy}\";r={};t={}", self.remaining, self.resets_in);
        for (name, value) in [(POLICY, rule), (STATE, state)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_holds_as_many_requests_as_the_limit_says_for_each_caller() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        assert_eq!([0; 4].map(|_| limiter.take_at(now, "ada", 2).exceeded), [false, false, true, true]);
        assert!(!limiter.take_at(now, "bob", 2).exceeded);
        let later = limiter.take_at(now + WINDOW, "ada", 2);
        assert_eq!((later.exceeded, later.remaining, later.resets_in, later.missed), (false, 1, 60, 2));
    }

    #[test]
    fn what_is_left_is_told() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        limiter.take_at(now, 1, 600);
        let mut headers = HeaderMap::new();
        limiter.take_at(now + Duration::from_millis(17_500), 1, 600).tell("api", &mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"api\";q=600;w=60");
        assert_eq!(headers["ratelimit"], "\"api\";r=598;t=43");
    }

    #[test]
    fn what_was_given_back_can_be_taken_again() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        limiter.take_at(now, 1, 1);
        limiter.give_back(&1);
        assert!(!limiter.take_at(now, 1, 1).exceeded);
    }

    #[test]
    fn beyond_what_is_remembered_all_newcomers_share_one_window_until_a_minute_is_over() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        for who in 0..MANY {
            assert!(!limiter.take_at(now, who, 1).exceeded);
        }
        assert!(!limiter.take_at(now, MANY, 1).exceeded);
        assert!(limiter.take_at(now, MANY + 1, 1).exceeded);
        assert!(limiter.take_at(now, 0, 1).exceeded, "those who are known are counted on their own");
        assert_eq!(limiter.windows().of.len(), MANY);
        assert!(!limiter.take_at(now + WINDOW, MANY + 2, 1).exceeded);
        assert_eq!(limiter.windows().of.len(), 1);
    }
}
