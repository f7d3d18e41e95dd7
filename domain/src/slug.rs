//! The short name of an organization, project or app: it goes into paths and repository names, so it is plain.

/// `[a-z0-9][a-z0-9-]{1,62}`.
pub const SLUG_RULE: &str = "must have 2 to 63 characters of [a-z0-9-] and not begin with `-`";

pub fn is_slug(text: &str) -> bool {
    (2..=63).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::is_slug;

    #[test]
    fn slugs_are_short_lower_case_and_begin_with_a_letter_or_digit() {
        assert!(["demo", "a1", "7-up", &"x".repeat(63)].into_iter().all(is_slug));
        assert!(!["", "a", "-a", "A1", "a_b", "a b", "é1", &"x".repeat(64)].into_iter().any(is_slug));
    }
}
