//! What values a policy key can have, and how that reads.

use std::fmt;

use serde_json::Value;

pub(super) enum Bounds {
    Integer {
        least: i64,
        most: i64,
    },
    Number {
        least: f64,
        most: f64,
    },
    Switch,
    /// A list of words, all from `of` where that is given.
    Words {
        of: Option<&'static [&'static str]>,
    },
    /// An object whose names are all from `names`.
    Table {
        names: &'static [&'static str],
    },
}

impl Bounds {
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        if self.hold(value) { Ok(()) } else { Err(format!("must be {self}")) }
    }

    fn hold(&self, value: &Value) -> bool {
        match self {
            Bounds::Integer { least, most } => value.as_i64().is_some_and(|n| (*least..=*most).contains(&n)),
            Bounds::Number { least, most } => value.as_f64().is_some_and(|n| (*least..=*most).contains(&n)),
            Bounds::Switch => value.is_boolean(),
            Bounds::Words { of } => value.as_array().is_some_and(|items| {
                items.iter().all(|item| {
                    let word = item.as_str().unwrap_or_default();
                    !word.is_empty() && of.is_none_or(|known| known.contains(&word))
                })
            }),
            Bounds::Table { names } => value
                .as_object()
                .is_some_and(|fields| fields.keys().all(|name| names.contains(&name.as_str()))),
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bounds::Integer { least, most } => write!(f, "a whole number from {least} to {most}"),
            Bounds::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Bounds::Switch => f.write_str("true or false"),
            Bounds::Words { of: None } => f.write_str("a list of words"),
            Bounds::Words { of: Some(known) } => write!(f, "a list of words among {}", known.join(", ")),
            Bounds::Table { names } => write!(f, "an object with names among {}", names.join(", ")),
        }
    }
}
