//! The one shape of every error answer, and its RFC 9457 form for clients that ask for it.

use domain::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorEnvelope {
    pub code: ErrorCode,
    /// One sentence for a person; the wording may change, the code does not.
    pub message: String,
    pub correlation_id: String,
    /// Evidence that depends on the code: `errors` for validation, `state` and `allowed_actions` for conflicts.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

/// The same error as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem; stable per code.
    pub r#type: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    pub code: ErrorCode,
    pub correlation_id: String,
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

impl From<ErrorEnvelope> for Problem {
    fn from(error: ErrorEnvelope) -> Problem {
        Problem {
            r#type: format!("urn:gpuaas:error:{}", error.code),
            title: error.code.explanation().to_owned(),
            status: error.code.status(),
            detail: error.message,
            code: error.code,
            correlation_id: error.correlation_id,
            details: error.details,
        }
    }
}

/// One thing that is wrong with a request, as listed in `details.errors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invalid {
    /// JSON Pointer to the value; for query parameters `/name`.
    pub pointer: String,
    pub message: String,
}
