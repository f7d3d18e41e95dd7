//! Journaled values are checked before they reach the committer, so that one bad value cannot fail a batch.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::fault::Fault;
use crate::settings::Settings;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("cannot be written as JSON: {0}")]
    NotJson(String),
    #[error("is {size} bytes, more than the {limit} allowed")]
    TooLarge { size: usize, limit: usize },
    #[error("contains a NUL character, which the database cannot hold")]
    Nul,
    #[error("is nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("contains a number or a character that the database cannot hold")]
    Unstorable,
}

impl PayloadError {
    pub(crate) fn fault(&self, what: &str) -> Fault {
        Fault::terminal("payload_refused", format!("{what} {self}"))
    }
}

/// Serialises and checks a value; the text is what is hashed, stored and compared.
pub(crate) fn encode(
    value: &impl Serialize,
    limit: usize,
    settings: &Settings,
) -> Result<String, PayloadError> {
    let text = serde_json::to_string(value).map_err(|e| PayloadError::NotJson(e.to_string()))?;
    check(&text, limit, settings)?;
    Ok(text)
}

pub(crate) fn check(text: &str, limit: usize, settings: &Settings) -> Result<(), PayloadError> {
    if text.len() > limit {
        return Err(PayloadError::TooLarge { size: text.len(), limit });
    }
    if holds_nul(text) {
        return Err(PayloadError::Nul);
    }
    let seen = Seen::in_text(text);
    if seen.depth > settings.max_depth {
        return Err(PayloadError::TooDeep(settings.max_depth));
    }
    // The journal keeps JSON as text, and Postgres would stumble only when somebody reads it.
    if seen.longest_number > LONGEST_NUMBER
        || (seen.doubtful && serde_json::from_str::<serde_json::Value>(text).is_err())
    {
        return Err(PayloadError::Unstorable);
    }
    Ok(())
}

/// Longer than any number anybody means; Postgres has its limit far beyond.
const LONGEST_NUMBER: usize = 1000;

/// The first half of SHA-256 is plenty to notice that a replayed step was given something else.
pub(crate) fn hash(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes())[..16].to_vec()
}

/// An error message cut to its limit on a character boundary, without NUL.
pub(crate) fn clip(message: &str, limit: usize) -> String {
    let mut end = message.len().min(limit);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].replace('\0', "\u{fffd}")
}

/// `\u0000` preceded by an even number of backslashes is an escaped NUL.
fn holds_nul(text: &str) -> bool {
    text.match_indices("\\u0000").any(|(at, _)| {
        let before = text[..at].bytes().rev().take_while(|b| *b == b'\\').count();
        before % 2 == 0
    })
}

/// What one pass over a JSON text finds.
#[derive(Default)]
struct Seen {
    depth: usize,
    longest_number: usize,
    /// There are exponents or surrogates, of which Postgres takes only some.
    doubtful: bool,
}

impl Seen {
    fn in_text(text: &str) -> Seen {
        let mut seen = Seen::default();
        let (mut depth, mut number, mut in_string, mut escaped) = (0usize, 0usize, false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => {
                    escaped = false;
                    seen.doubtful |= byte == b'u';
                }
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => {
                    depth += 1;
                    seen.depth = seen.depth.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'e' | b'E' if number > 0 => seen.doubtful = true,
                _ => {}
            }
            number = if !in_string && (byte.is_ascii_digit() || byte == b'.') { number + 1 } else { 0 };
            seen.longest_number = seen.longest_number.max(number);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_is_found_however_it_is_escaped() {
        let settings = Settings::default();
        assert_eq!(encode(&"a\0b", 100, &settings), Err(PayloadError::Nul));
        assert!(encode(&"a\\u0000b", 100, &settings).is_ok(), "a written-out escape is plain text");
    }

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        let settings = Settings { max_depth: 2, ..Settings::default() };
        assert!(encode(&serde_json::json!({"a": ["[[[["]}), 100, &settings).is_ok());
        let deep = serde_json::json!({"a": [[1]]});
        assert_eq!(encode(&deep, 100, &settings), Err(PayloadError::TooDeep(2)));
    }

    #[test]
    fn numbers_and_characters_the_database_cannot_hold_are_refused() {
        let settings = Settings::default();
        let check = |text: &str| check(text, 10_000, &settings);
        for text in [
            "1e140000",
            r#"{"a":-2.5E999999}"#,
            r#""\ud800""#,
            &"9".repeat(1001),
            &format!("0.{}", "0".repeat(1001)),
        ] {
            assert_eq!(check(text), Err(PayloadError::Unstorable), "{text:.40}");
        }
        for text in ["1e300", "[true,false,null]", r#""\ud83d\ude00""#, r#""1e140000""#, r#""e\u00e9""#] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn size_is_bounded_and_messages_are_clipped_between_characters() {
        let settings = Settings::default();
        assert!(matches!(
            encode(&"x".repeat(99), 50, &settings),
            Err(PayloadError::TooLarge { size: 101, .. })
        ));
        assert_eq!(clip("aéb", 2), "a");
    }
}
