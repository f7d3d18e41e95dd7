//! The correlation id: one text for everything a request sets off.
//!
//! Callers may choose it (`X-Request-ID`), so it is checked at the door and safe to log and to store ever after.
//! It is not unique and grants nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// 1 to 128 characters of `[A-Za-z0-9._:-]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CorrelationId(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to {max} characters of [A-Za-z0-9._:-]", max = CorrelationId::MAX_LENGTH)]
pub struct InvalidCorrelationId;

impl CorrelationId {
    pub const MAX_LENGTH: usize = 128;

    /// The same rule, as the API document says it.
    pub const PATTERN: &str = "^[A-Za-z0-9._:-]{1,128}$";

    /// A new one, for a request that came without.
    pub fn generate() -> CorrelationId {
        CorrelationId(Uuid::now_v7().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CorrelationId {
    type Error = InvalidCorrelationId;

    fn try_from(text: String) -> Result<CorrelationId, InvalidCorrelationId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        let fits = (1..=CorrelationId::MAX_LENGTH).contains(&text.len());
        if fits && text.bytes().all(allowed) { Ok(CorrelationId(text)) } else { Err(InvalidCorrelationId) }
    }
}

impl FromStr for CorrelationId {
    type Err = InvalidCorrelationId;

    fn from_str(text: &str) -> Result<CorrelationId, InvalidCorrelationId> {
        CorrelationId::try_from(text.to_owned())
    }
}

impl From<CorrelationId> for String {
    fn from(id: CorrelationId) -> String {
        id.0
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_may_choose_plain_identifiers() {
        for text in ["a", "deploy-42", "ci:run/7".replace('/', ".").as_str(), &"x".repeat(128)] {
            assert_eq!(text.parse::<CorrelationId>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn empty_long_or_strange_texts_are_refused() {
        for text in ["", " ", "a b", "a\nb", "naïve", "a/b", "{}", &"x".repeat(129)] {
            assert_eq!(text.parse::<CorrelationId>(), Err(InvalidCorrelationId), "{text:?}");
        }
    }

    #[test]
    fn generated_ids_pass_their_own_check() {
        assert!(CorrelationId::generate().as_str().parse::<CorrelationId>().is_ok());
    }
}
