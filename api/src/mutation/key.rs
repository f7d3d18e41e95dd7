//! The idempotency key a caller names: `X-Idempotency-Key`, or `Idempotency-Key`, which means the same.

use axum::http::HeaderMap;
use domain::ErrorCode;

use crate::error::ApiError;

const NAMES: [&str; 2] = ["x-idempotency-key", "idempotency-key"];
const LONGEST: usize = 128;

pub(super) fn of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = NAMES.iter().flat_map(|name| headers.get_all(*name));
    let Some(first) = given.next() else { return Ok(None) };
    if given.any(|other| other != first) {
        return refuse("Two different idempotency keys were sent.");
    }
    match first.to_str() {
        Ok(key) if (1..=LONGEST).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) => {
            Ok(Some(key.to_owned()))
        }
        _ => refuse("An idempotency key has 1 to 128 printable ASCII characters without spaces."),
    }
}

fn refuse(message: &str) -> Result<Option<String>, ApiError> {
    Err(ApiError::new(ErrorCode::InvalidRequest, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn sent(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn either_name_will_do_and_both_must_agree() {
        assert_eq!(of(&sent(&[])).unwrap(), None);
        for name in NAMES {
            assert_eq!(of(&sent(&[(name, "k")])).unwrap().as_deref(), Some("k"));
        }
        assert_eq!(of(&sent(&[(NAMES[0], "k"), (NAMES[1], "k")])).unwrap().as_deref(), Some("k"));
        assert!(of(&sent(&[(NAMES[0], "k"), (NAMES[1], "other")])).is_err());
    }

    #[test]
    fn empty_overlong_and_spaced_keys_are_refused() {
        assert!(of(&sent(&[(NAMES[0], "two words")])).is_err());
        assert!(of(&sent(&[(NAMES[0], "")])).is_err());
        assert!(of(&sent(&[(NAMES[0], &"k".repeat(129))])).is_err());
        assert!(of(&sent(&[(NAMES[0], &"k".repeat(128))])).is_ok());
    }
}
