//! Why something cannot be done as asked: a code with its evidence, values that are not allowed, or the database itself.

use domain::ErrorCode;
use serde_json::{Map, Value};

/// Why something cannot be done as asked.
#[derive(Debug)]
pub enum Refused {
    No {
        code: ErrorCode,
        message: String,
        details: Map<String, Value>,
    },
    /// Values of the input that are not allowed: pointer and sentence.
    Invalid(Vec<(String, String)>),
    Database(sqlx::Error),
}

impl Refused {
    pub fn no(code: ErrorCode, message: impl Into<String>) -> Refused {
        Refused::No { code, message: message.into(), details: Map::new() }
    }

    pub fn with(mut self, name: &str, evidence: impl Into<Value>) -> Refused {
        if let Refused::No { details, .. } = &mut self {
            details.insert(name.to_owned(), evidence.into());
        }
        self
    }
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Refused {
        Refused::Database(error)
    }
}
