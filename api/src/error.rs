//! `ApiError`: how a handler says no. One code from the closed list, one sentence, and evidence.
//!
//! Errors from below are sorted here, once. What a caller cannot act upon is logged and becomes `internal_error`,
//! so that no query, path or stack ever leaves the process.

use api_types::Invalid;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::{ActorType, ErrorCode};
use engine::{EngineError, OperateError, StartError};
use serde_json::{Map, Value, json};
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    pub details: Map<String, Value>,
    /// Seconds after which trying again makes sense.
    pub retry_after: Option<u32>,
    /// Whether the audit log must tell of it although its code is no denial.
    pub(crate) denial: bool,
    /// Whom a token that is refused is truly about.
    pub(crate) subject: Option<(ActorType, Uuid)>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        let (message, details) = (message.into(), Map::new());
        ApiError { code, message, details, retry_after: None, denial: false, subject: None }
    }

    /// The code's own explanation says it all.
    pub fn plain(code: ErrorCode) -> ApiError {
        ApiError::new(code, code.explanation())
    }

    pub fn with(mut self, name: &str, evidence: impl Into<Value>) -> ApiError {
        self.details.insert(name.to_owned(), evidence.into());
        self
    }

    pub fn retry_after(mut self, seconds: u32) -> ApiError {
        self.retry_after = Some(seconds);
        self
    }

    /// Refused for what was asked, not for how: the audit log tells of it.
    pub(crate) fn told_as_denial(mut self) -> ApiError {
        self.denial = true;
        self
    }

    pub(crate) fn about(mut self, actor_type: ActorType, id: Uuid) -> ApiError {
        self.subject = Some((actor_type, id));
        self
    }

    /// One thing that is wrong with a body.
    pub(crate) fn invalid(pointer: &str, message: impl Into<String>) -> ApiError {
        let problem = Invalid { pointer: pointer.to_owned(), message: message.into() };
        ApiError::listing(ErrorCode::ValidationError, vec![problem])
    }

    /// All that is wrong with a request, at once.
    pub fn listing(code: ErrorCode, problems: Vec<Invalid>) -> ApiError {
        let message = match problems.as_slice() {
            [only] => format!("{} {}", only.pointer, only.message).trim_start().to_owned(),
            several => format!("The request has {} problems.", several.len()),
        };
        ApiError::new(code, message).with("errors", json!(problems))
    }

    pub fn unavailable(message: &str) -> ApiError {
        ApiError::new(ErrorCode::ServiceUnavailable, message).retry_after(1)
    }

    /// The cause goes to the log only; the span around the request adds the correlation id.
    pub fn internal(cause: &dyn std::fmt::Display) -> ApiError {
        tracing::error!(error = %cause, "a request failed");
        ApiError::plain(ErrorCode::InternalError)
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> ApiError {
        match &error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_) => {
                tracing::warn!(%error, "the database did not answer");
                ApiError::unavailable("The database does not answer right now.")
            }
            // Statements and locks have time limits; a caller may well succeed the next time.
            sqlx::Error::Database(refusal) if is_passing(refusal.code().as_deref()) => {
                tracing::warn!(%error, "the database gave up on a statement");
                ApiError::unavailable("The database was too busy to answer in time.")
            }
            sqlx::Error::Database(refusal) if is_unstorable(refusal.code().as_deref()) => ApiError::new(
                ErrorCode::InvalidRequest,
                "A text holds a character that cannot be stored, such as NUL.",
            ),
            sqlx::Error::Database(refusal) if refusal.is_unique_violation() => {
                ApiError::plain(ErrorCode::AlreadyExists)
            }
            _ => ApiError::internal(&error),
        }
    }
}

/// Serialisation failure, deadlock, lock not available, statement cancelled, shutdown, too many connections.
fn is_passing(sqlstate: Option<&str>) -> bool {
    matches!(sqlstate, Some("40001" | "40P01" | "55P03" | "57014" | "57P01" | "57P02" | "57P03" | "53300"))
}

/// Text that is no text to the database. It came in with the request: nothing of ours holds any.
fn is_unstorable(sqlstate: Option<&str>) -> bool {
    matches!(sqlstate, Some("22021" | "22P05"))
}

impl From<OperateError> for ApiError {
    fn from(error: OperateError) -> ApiError {
        match error {
            OperateError::NotFound => ApiError::plain(ErrorCode::WorkflowNotFound),
            OperateError::Conflict { state, allowed, why } => ApiError::new(ErrorCode::StateConflict, why)
                .with("state", state.as_str())
                .with("allowed_actions", json!(allowed)),
            OperateError::Start(refusal) => refusal.into(),
            OperateError::Database(error) => error.into(),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> ApiError {
        match error {
            StartError::TargetBusy(holder) => {
                ApiError::new(ErrorCode::OperationInProgress, "another run already acts on the same resource")
                    .with("workflow_id", json!(holder.id))
                    .with("kind", holder.kind)
                    .with("status", holder.state.as_str())
            }
            StartError::Backlog => ApiError::plain(ErrorCode::RateLimited).retry_after(5),
            StartError::Pressure => ApiError::unavailable("The database does not keep up right now."),
            StartError::Engine(EngineError::Database(error)) => error.into(),
            StartError::Engine(error) => ApiError::internal(&error),
        }
    }
}

/// Only the status is written here. The edge fills in the body, because only it knows the correlation id and which
/// form the caller accepts.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use domain::{ReasonKind, StatusReason};

    use super::*;

    #[test]
    fn every_code_has_a_page_that_says_what_to_do_and_nothing_else_has() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
        let pages = pages(&folder);
        let codes: BTreeSet<String> = ErrorCode::all().map(|code| format!("{code}.md")).collect();
        assert_eq!(pages, codes);
        for code in ErrorCode::all() {
            let page = std::fs::read_to_string(folder.join(format!("{code}.md"))).unwrap();
            let head =
                format!("# {code}\n\nStatus {}. {}\n\n## Cause\n\n", code.status(), code.explanation());
            let advice = page.strip_prefix(&head).unwrap_or_else(|| panic!("{code} is introduced wrongly"));
            let (cause, remedy) = advice.split_once("\n\n## What to do\n\n").expect("what to do");
            assert!(!cause.is_empty() && !remedy.trim().is_empty(), "{code} leaves its reader alone");
        }
    }

    #[test]
    fn every_status_reason_has_a_page_that_says_who_must_act_and_nothing_else_has() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors/reasons");
        let reasons = StatusReason::ALL.iter().map(|reason| format!("{reason}.md"));
        assert_eq!(pages(&folder), reasons.collect());
        for reason in StatusReason::ALL {
            let page = std::fs::read_to_string(folder.join(format!("{reason}.md"))).unwrap();
            let kind = match reason.kind() {
                ReasonKind::Waiting => "Waiting: nobody has to act at first.",
                ReasonKind::Blocked => "Blocked: somebody has to act.",
            };
            let head = format!("# {reason}\n\n{kind}\n\n## Cause\n\n");
            let advice = page.strip_prefix(&head).unwrap_or_else(|| panic!("{reason} is introduced wrongly"));
            let (cause, remedy) = advice.split_once("\n\n## What to do\n\n").expect("what to do");
            assert!(!cause.is_empty() && !remedy.trim().is_empty(), "{reason} leaves its reader alone");
        }
    }

    fn pages(folder: &Path) -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        files.map(|file| file.file_name().into_string().unwrap()).collect()
    }
}
