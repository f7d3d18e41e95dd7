//! Patterns of subjects and claims: `*` stands for any run of characters, everything else for itself.

pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    // Between the fixed ends, the earliest place for each part leaves most room for the next.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_pattern_without_stars_is_the_text_itself() {
        assert!(fits("repo:acme/vision", "repo:acme/vision"));
        assert!(!fits("repo:acme/vision", "repo:acme/vision2") && !fits("repo:acme", "xrepo:acme"));
    }

    #[test]
    fn a_star_stands_for_anything_between_fixed_ends() {
        let pattern = "repo:acme/*:ref:refs/heads/*";
        assert!(fits(pattern, "repo:acme/vision:ref:refs/heads/main"));
        assert!(!fits(pattern, "repo:evil/vision:ref:refs/heads/main"));
        assert!(!fits(pattern, "repo:acme/vision:ref:refs/tags/v1"));
        assert!(fits("*-ci", "team-ci") && !fits("*-ci", "team-ci-2"));
        assert!(fits("a*b*b", "abb") && !fits("a*b*b", "ab"), "one character cannot serve twice");
        assert!(fits("*", "") && fits("**", "x"));
    }
}
