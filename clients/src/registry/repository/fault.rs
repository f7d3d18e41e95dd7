//! What a registry may say instead of what it was asked for. Errors are sorted here, once: does it say something of what was
//! asked for, or only of the registry itself?

use domain::Digest;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::bounded;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryFault {
    #[error("the registry has no {what} {reference} in {repository}")]
    Absent { what: &'static str, reference: String, repository: String },
    #[error("the registry's {what} {reference} has more than {most} bytes")]
    TooLarge { what: &'static str, reference: String, most: usize },
    /// The registry gave other bytes than it was asked for.
    #[error("the registry answered {found} when asked for {asked}")]
    Mismatch { asked: Digest, found: Digest },
    #[error("the registry refused: {0}")]
    Refused(String),
    #[error("the registry's storage is full or read-only: {0}")]
    StorageFull(String),
    #[error("what is to be pushed cannot be read: {0}")]
    Unreadable(String),
    /// Says nothing about what was asked for.
    #[error("the registry does not answer: {0}")]
    Unavailable(String),
}

impl RegistryFault {
    /// Whether it says something of what was asked for, rather than of the registry, its configuration or the clocks.
    pub fn is_verdict(&self) -> bool {
        match self {
            RegistryFault::Absent { .. }
            | RegistryFault::TooLarge { .. }
            | RegistryFault::Mismatch { .. } => true,
            RegistryFault::Refused(_)
            | RegistryFault::StorageFull(_)
            | RegistryFault::Unreadable(_)
            | RegistryFault::Unavailable(_) => false,
        }
    }
}

/// A server's own trouble passes; anything else it says is its answer.
pub(super) async fn refused(answer: Response) -> RegistryFault {
    let status = answer.status();
    judged(status, &bounded(answer, "error", "", 4096).await.unwrap_or_default())
}

fn judged(status: StatusCode, body: &[u8]) -> RegistryFault {
    let said = format!("{status} {}", first_message(body).unwrap_or_default());
    match status {
        StatusCode::INSUFFICIENT_STORAGE | StatusCode::METHOD_NOT_ALLOWED => RegistryFault::StorageFull(said),
        _ if is_full(&said) => RegistryFault::StorageFull(said),
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            RegistryFault::Unavailable(said)
        }
        _ => RegistryFault::Refused(said),
    }
}

/// In words, or by the number that Linux has for it.
fn is_full(said: &str) -> bool {
    ["no space left", r#""Err":28}"#, r#""Err":28,"#].iter().any(|sign| said.contains(sign))
}

/// `{"errors": [{"code", "message", "detail"}]}`, as every registry answers. The detail is of any shape; what a full disk
/// says is in it.
fn first_message(body: &[u8]) -> Option<String> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let first = said.get("errors")?.get(0)?;
    let word = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let detail = first.get("detail").filter(|detail| !detail.is_null());
    let detail = detail.map(|detail| detail.as_str().map_or_else(|| detail.to_string(), str::to_owned));
    let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    Some(format!("{}: {}{detail}", word("code"), word("message")))
}

/// Never the address itself: it may hold a signature.
pub(super) fn unavailable(error: reqwest::Error) -> RegistryFault {
    let why = if error.is_timeout() { "it did not answer in time" } else { "the connection failed" };
    RegistryFault::Unavailable(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_told_apart_from_a_registry_that_is_away() {
        let body = br#"{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":
            {"DriverName":"filesystem","Enclosed":{"Op":"mkdir","Path":"/var/lib/registry","Err":28}}}]}"#;
        let full = judged(StatusCode::INTERNAL_SERVER_ERROR, body);
        assert!(matches!(full, RegistryFault::StorageFull(_)), "{full}");
        let word = br#"{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":"write: no space left on device"}]}"#;
        assert!(matches!(judged(StatusCode::INTERNAL_SERVER_ERROR, word), RegistryFault::StorageFull(_)));
        let away = br#"{"errors":[{"code":"UNAVAILABLE","message":"service unavailable"}]}"#;
        assert!(matches!(judged(StatusCode::SERVICE_UNAVAILABLE, away), RegistryFault::Unavailable(_)));
        assert!(matches!(judged(StatusCode::FORBIDDEN, b""), RegistryFault::Refused(_)));
    }
}
