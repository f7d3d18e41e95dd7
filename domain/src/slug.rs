//! The short name of an organization, project or app: it goes into paths and repository names, so it is plain.

/// The rule as the API document says it.
pub const PATTERN: &str = "^[a-z0-9][a-z0-9-]{1,62}$";

pub fn is_slug(text: &str) -> bool {
    (2..=63).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The slug that a name for people suggests: `App operator` becomes `app-operator`. `None` if too little is left.
pub fn suggested_by(name: &str) -> Option<String> {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(63).collect();
    is_slug(&slug).then_some(slug)
}

#[cfg(test)]
mod tests {
    use super::{is_slug, suggested_by};

    #[test]
    fn a_name_for_people_suggests_a_slug() {
        assert_eq!(suggested_by("App operator (CI)").as_deref(), Some("app-operator-ci"));
        assert_eq!(suggested_by("demo").as_deref(), Some("demo"));
        assert_eq!(suggested_by("–").as_deref(), None);
    }

    #[test]
    fn slugs_are_short_lower_case_and_begin_with_a_letter_or_digit() {
        assert!(["demo", "a1", "7-up", &"x".repeat(63)].into_iter().all(is_slug));
        assert!(!["", "a", "-a", "A1", "a_b", "a b", "é1", &"x".repeat(64)].into_iter().any(is_slug));
    }
}
