//! Version numbers: what one looks like, and which of two is newer.
//!
//! The dotted part is compared number by number, as people read it: `1.10` is newer than `1.9`, and `1.0` equals `1`.
//! With equal numbers a version with a suffix after `-` comes before the one without, as a candidate comes before its
//! release; suffixes are compared word by word, numbers as numbers. `+` and what follows it is build information and
//! decides only between versions that are equal otherwise, so that the order is total.

use std::cmp::Ordering;

/// The rule as the schema says it.
pub const PATTERN: &str = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$";

pub fn is_version(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte))
}

/// Which version is newer.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left_core, left_suffix, _) = parts(left);
    let (right_core, right_suffix, _) = parts(right);
    words(left_core, right_core)
        .then_with(|| match (left_suffix, right_suffix) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(left), Some(right)) => words(left, right),
        })
        .then_with(|| left.cmp(right))
}

/// `1.2.0-rc.1+cuda` is `1.2.0`, `rc.1` and `cuda`.
fn parts(version: &str) -> (&str, Option<&str>, Option<&str>) {
    let (rest, build) = split(version, '+');
    let (core, suffix) = split(rest, '-');
    (core, suffix, build)
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn words(left: &str, right: &str) -> Ordering {
    let separators = ['.', '_', '-'];
    let (mut left, mut right) = (left.split(separators), right.split(separators));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (Some(word), None) => word_order(word, "0"),
            (None, Some(word)) => word_order("0", word),
            (Some(left), Some(right)) => word_order(left, right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Numbers by their size, however long; words by their letters; a word comes before any number, as `rc` before `0`.
fn word_order(left: &str, right: &str) -> Ordering {
    let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    match (digits(left), digits(right)) {
        (true, true) => {
            let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
            left.len().cmp(&right.len()).then_with(|| left.cmp(right))
        }
        (false, false) => left.cmp(right),
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        for (older, newer) in [
            ("1.9.0", "1.10.0"),
            ("0.9", "0.10"),
            ("1.2", "1.2.1"),
            ("23.11.5", "24.05.0"),
            ("1.0.0-rc.1", "1.0.0"),
            ("1.0.0-rc.2", "1.0.0-rc.10"),
            ("1.0.0-alpha", "1.0.0-beta"),
            ("99999999999999999999998.0", "99999999999999999999999.0"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} < {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} > {older}");
        }
    }

    #[test]
    fn only_the_same_text_is_equal() {
        assert_eq!(compare("1.2.3", "1.2.3"), Ordering::Equal);
        for (left, right) in [("1.0", "1"), ("1.0.0", "1.0.0+cuda"), ("24.5", "24.05")] {
            assert_ne!(compare(left, right), Ordering::Equal, "{left} and {right}");
            assert_eq!(compare(left, right), compare(right, left).reverse());
        }
    }

    #[test]
    fn the_pattern_is_what_the_function_says() {
        assert!(
            ["1", "24.05.0", "1.4.2-rc.1+cuda_12", "nightly", &"1".repeat(64)].into_iter().all(is_version)
        );
        assert!(!["", ".1", "-1", "1 0", "1/0", "é", &"1".repeat(65)].into_iter().any(is_version));
    }
}
