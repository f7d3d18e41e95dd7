//! How often the workloads of one network may ask without proof. What they ask reaches the platform from the node's own address,
//! where all strangers are counted together: whoever fails again and again is refused here, for the rest of the minute, before
//! that is used up for the neighbours too.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};

/// A twentieth of what the platform allows an address unless told otherwise. A workload whose token ran out fails once, so it is
/// plenty for one that works. What is under way when it is reached comes on top: no more than there may be conversations.
const MOST_UNPROVEN: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);

/// By this the platform says against which limit it counted a request, and this is the one of an address.
const COUNTED: &str = "ratelimit-policy";
const BY_ADDRESS: &[u8] = b"\"anonymous\"";

#[derive(Default)]
pub(super) struct Ration(Mutex<Option<Window>>);

struct Window {
    began: Instant,
    unproven: u32,
}

impl Ration {
    /// How long the network is to wait, where it has used up its share of the minute.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.wait_at(Instant::now())
    }

    pub(super) fn note(&self, status: StatusCode, headers: &HeaderMap) {
        if is_unproven(status, headers) {
            self.count_at(Instant::now());
        }
    }

    fn wait_at(&self, now: Instant) -> Option<Duration> {
        let window = self.window();
        let window = window.as_ref().filter(|window| window.unproven >= MOST_UNPROVEN)?;
        let left = WINDOW.saturating_sub(now.duration_since(window.began));
        (!left.is_zero()).then_some(left)
    }

    fn count_at(&self, now: Instant) {
        let mut window = self.window();
        match window.as_mut().filter(|window| now.duration_since(window.began) < WINDOW) {
            Some(window) => window.unproven = window.unproven.saturating_add(1),
            None => *window = Some(Window { began: now, unproven: 1 }),
        }
    }

    fn window(&self) -> MutexGuard<'_, Option<Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Public routes count too, whatever they answer. By its status alone a refusal is known where somebody on the way took the word
/// of the limit out.
fn is_unproven(status: StatusCode, headers: &HeaderMap) -> bool {
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS);
    refused || headers.get(COUNTED).is_some_and(|policy| policy.as_bytes().starts_with(BY_ADDRESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_fails_too_often_waits_until_the_minute_is_over() {
        let (ration, now) = (Ration::default(), Instant::now());
        for _ in 0..MOST_UNPROVEN {
            assert_eq!(ration.wait_at(now), None);
            ration.count_at(now);
        }
        let later = now + Duration::from_secs(20);
        assert_eq!(ration.wait_at(later), Some(Duration::from_secs(40)));
        assert_eq!(ration.wait_at(now + WINDOW), None);
        ration.count_at(now + WINDOW);
        assert_eq!(ration.wait_at(now + WINDOW), None, "a new minute begins with nothing");
    }

    #[test]
    fn what_counts_against_the_address_counts_and_what_was_proven_does_not() {
        let said = |policy: &'static str| {
            HeaderMap::from_iter([(COUNTED.parse().unwrap(), policy.parse().unwrap())])
        };
        let of_strangers = said("\"anonymous\";q=600;w=60");
        assert!(is_unproven(StatusCode::UNAUTHORIZED, &HeaderMap::new()));
        assert!(is_unproven(StatusCode::BAD_REQUEST, &of_strangers), "a wrong proof");
        assert!(is_unproven(StatusCode::OK, &of_strangers), "what anybody may read");
        assert!(!is_unproven(StatusCode::OK, &HeaderMap::new()), "a token that was minted");
        assert!(!is_unproven(StatusCode::NO_CONTENT, &said("\"api\";q=600;w=60")), "a heartbeat");
    }
}
