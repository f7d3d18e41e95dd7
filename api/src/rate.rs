//! How often a principal may ask: so many requests a minute, counted from its first one. The count is this process's
//! own; with several behind a balancer a principal gets the limit from each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const WINDOW: Duration = Duration::from_secs(60);
/// Beyond this many principals, those whose minute is over are forgotten.
const MANY: usize = 10_000;

#[derive(Default)]
pub(crate) struct Limiter {
    windows: Mutex<HashMap<Uuid, Window>>,
}

struct Window {
    began: Instant,
    used: u32,
}

/// What is left of a principal's minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    limit: u32,
    remaining: u32,
    pub(crate) resets_in: u32,
    pub(crate) exceeded: bool,
}

impl Limiter {
    pub(crate) fn take(&self, principal: Uuid, limit: u32) -> Allowance {
        self.take_at(Instant::now(), principal, limit)
    }

    fn take_at(&self, now: Instant, principal: Uuid, limit: u32) -> Allowance {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MANY {
            windows.retain(|_, window| now.duration_since(window.began) < WINDOW);
        }
        let window = windows.entry(principal).or_insert(Window { began: now, used: 0 });
        if now.duration_since(window.began) >= WINDOW {
            *window = Window { began: now, used: 0 };
        }
        let exceeded = window.used >= limit;
        window.used = window.used.saturating_add(1);
        let left = WINDOW.saturating_sub(now.duration_since(window.began));
        let resets_in = u32::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        Allowance { limit, remaining: limit.saturating_sub(window.used), resets_in, exceeded }
    }
}

impl Allowance {
    /// The `RateLimit` fields of draft-ietf-httpapi-ratelimit-headers.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        let policy = format!("\"api\";q={};w={}", self.limit, WINDOW.as_secs());
        let state = format!("\"api\";r={};t={}", self.remaining, self.resets_in);
        for (name, value) in [(POLICY, policy), (STATE, state)] {
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
    fn a_minute_holds_as_many_requests_as_the_limit_says_for_each_principal() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        let (ada, bob) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!([0; 3].map(|_| limiter.take_at(now, ada, 2).exceeded), [false, false, true]);
        assert!(!limiter.take_at(now, bob, 2).exceeded);
        let later = limiter.take_at(now + WINDOW, ada, 2);
        assert_eq!((later.exceeded, later.remaining, later.resets_in), (false, 1, 60));
    }

    #[test]
    fn what_is_left_is_told() {
        let (limiter, now) = (Limiter::default(), Instant::now());
        limiter.take_at(now, Uuid::nil(), 600);
        let mut headers = HeaderMap::new();
        limiter.take_at(now + Duration::from_millis(17_500), Uuid::nil(), 600).tell(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"api\";q=600;w=60");
        assert_eq!(headers["ratelimit"], "\"api\";r=598;t=43");
    }
}
