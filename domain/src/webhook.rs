//! How webhooks are retried, how their secrets look, and when one is given up: `5 s … 10 h`, each a little later by
//! chance, so that those who failed together do not come back together.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::word::UnknownWord;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The pauses after the first try, the second, and so on. After the last comes nothing: the delivery is a dead letter.
const PAUSES: [u64; 7] = [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/// How much later than its pause a retry may come.
const JITTER: f64 = 0.2;

/// The longest that one bad try keeps everything else waiting.
const LONGEST_REST: u64 = 5 * MINUTE;

/// A delivery was given up, and the receiver had taken nothing for this long: it is sent nothing more.
pub const PATIENCE: Duration = Duration::from_secs(24 * HOUR);

/// Both secrets sign for so long after a rotation.
pub const CHANGE_OVER: Duration = Duration::from_secs(24 * HOUR);

/// Why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    ByRequest,
    /// The receiver answered 410.
    Gone,
    /// It took nothing for as long as a delivery is tried.
    Failing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    Pending,
    Delivered,
    /// A dead letter: it can be inspected and replayed.
    Failed,
}

impl DisabledReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            DisabledReason::ByRequest => "by_request",
            DisabledReason::Gone => "gone",
            DisabledReason::Failing => "failing",
        }
    }
}

impl std::str::FromStr for DisabledReason {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<DisabledReason, UnknownWord> {
        let all = [DisabledReason::ByRequest, DisabledReason::Gone, DisabledReason::Failing];
        let named = all.into_iter().find(|reason| reason.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a reason for a webhook to be disabled"))
    }
}

impl DeliveryStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Failed => "failed",
        }
    }
}

impl std::str::FromStr for DeliveryStatus {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<DeliveryStatus, UnknownWord> {
        let all = [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed];
        let named = all.into_iter().find(|status| status.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a status of a delivery"))
    }
}

/// The pause after the `tries`th try of a delivery failed; nothing after the last. The same question has the same
/// answer: chance comes from the delivery's own id.
pub fn pause(delivery: Uuid, tries: i32) -> Option<Duration> {
    let nth = usize::try_from(tries).ok()?.checked_sub(1)?;
    let pause = Duration::from_secs(*PAUSES.get(nth)?);
    let chance = delivery.as_u128().rotate_left(tries.unsigned_abs() * 11) as u32;
    Some(pause.mul_f64(1.0 + JITTER * f64::from(chance) / f64::from(u32::MAX)))
}

/// How long a receiver is left alone after so many failed tries in a row, whatever else waits for it.
pub fn rest(failures: i32) -> Duration {
    let doubled = 1_u64.checked_shl(failures.unsigned_abs().saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(doubled.min(LONGEST_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_come_after_five_seconds_to_ten_hours_and_a_little_more() {
        let (one, other) = (Uuid::from_u128(0x0197_dead_beef), Uuid::from_u128(u128::MAX / 3));
        for (nth, least) in PAUSES.into_iter().enumerate() {
            let tries = i32::try_from(nth).unwrap() + 1;
            let least = Duration::from_secs(least);
            for delivery in [one, other] {
                let pause = pause(delivery, tries).unwrap();
                assert!((least..=least.mul_f64(1.0 + JITTER)).contains(&pause), "{tries}: {pause:?}");
            }
            assert_ne!(pause(one, tries), pause(other, tries));
        }
        assert_eq!((pause(one, 0), pause(one, 8)), (None, None));
    }

    #[test]
    fn a_receiver_that_fails_is_left_alone_for_longer_and_longer_but_not_for_ever() {
        let rests: Vec<u64> = (1..=11).map(|failures| rest(failures).as_secs()).collect();
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(rest(i32::MAX).as_secs(), 300);
    }
}
