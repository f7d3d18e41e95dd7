//! What versions, artifacts and tags may be called, each with the rule as the API document says it.

pub const VERSION_PATTERN: &str = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$";
pub const NAME_PATTERN: &str = "^[a-z0-9][a-z0-9._-]{0,62}$";
pub const TAG_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$";

pub fn is_version(text: &str) -> bool {
    fits(text, 64, |b| b.is_ascii_alphanumeric(), b".+_-")
}

pub fn is_name(text: &str) -> bool {
    fits(text, 63, |b| b.is_ascii_lowercase() || b.is_ascii_digit(), b"._-")
}

pub fn is_tag(text: &str) -> bool {
    fits(text, 128, |b| b.is_ascii_alphanumeric() || b == b'_', b".-")
}

/// Begins with a plain character and goes on with plain ones and a few more.
fn fits(text: &str, longest: usize, plain: impl Fn(u8) -> bool, more: &[u8]) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(&plain)
        && text.len() <= longest
        && bytes.all(|byte| plain(byte) || more.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_plainly_and_end_in_time() {
        assert!(["1.0.0", "2026.11+build_7-rc", "A"].into_iter().all(is_version));
        assert!(!["", ".1", "1 0", "é", &"1".repeat(65)].into_iter().any(is_version));
        assert!(["runtime", "weights.v1", "a"].into_iter().all(is_name));
        assert!(!["", "Runtime", "-a", "a/b", &"a".repeat(64)].into_iter().any(is_name));
        assert!(["dev-latest", "_x", "V1"].into_iter().all(is_tag));
        assert!(!["", "-x", "a:b", "a+b", &"a".repeat(129)].into_iter().any(is_tag));
    }
}
