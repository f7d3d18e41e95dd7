//! Strong entity tags: a digest of the very bytes of an answer, so that equal tags mean equal answers.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::ApiError;

/// A tag with its quotes, as headers carry it.
pub(crate) fn tag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// The tag of what a read of the resource would answer.
pub(crate) fn of(resource: &impl Serialize) -> Result<String, ApiError> {
    Ok(tag(&serde_json::to_vec(resource).map_err(|error| ApiError::internal(&error))?))
}

/// A resource, with the tag of its very bytes.
pub(crate) struct Tagged<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => {
                let json = (header::CONTENT_TYPE, "application/json".to_owned());
                ([json, (header::ETAG, tag(&bytes))], bytes).into_response()
            }
            Err(error) => ApiError::internal(&error).into_response(),
        }
    }
}

/// The caller's condition: only change what I have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    Absent,
    /// `*`: whatever it is, as long as it exists.
    Any,
    OneOf(Vec<String>),
}

impl IfMatch {
    /// Weak tags never match here: the comparison that guards a change is the strong one.
    fn holds(&self, current: &str) -> bool {
        match self {
            IfMatch::Absent | IfMatch::Any => true,
            IfMatch::OneOf(tags) => tags.iter().any(|tag| tag == current),
        }
    }

    /// Compare while the resource is held still, so that the tag is still true when the change happens.
    pub(crate) fn require(&self, current: &impl Serialize) -> Result<(), ApiError> {
        if *self == IfMatch::Absent {
            return Ok(());
        }
        let tag = of(current)?;
        if self.holds(&tag) {
            return Ok(());
        }
        Err(ApiError::plain(ErrorCode::PreconditionFailed).with("etag", tag))
    }

    fn read(value: &str) -> IfMatch {
        match value.trim() {
            "*" => IfMatch::Any,
            list => IfMatch::OneOf(list.split(',').map(|tag| tag.trim().to_owned()).collect()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<IfMatch, ApiError> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else { return Ok(IfMatch::Absent) };
        let text = value.to_str();
        text.map(IfMatch::read)
            .map_err(|_| ApiError::new(ErrorCode::InvalidRequest, "If-Match is not plain text."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_equal_tags_and_others_do_not() {
        assert_eq!(tag(b"run"), tag(b"run"));
        assert_ne!(tag(b"run"), tag(b"ran"));
        assert!(tag(b"run").starts_with('"') && tag(b"run").ends_with('"'));
    }

    #[test]
    fn one_of_several_tags_suffices_and_weak_ones_never_do() {
        let condition = IfMatch::read(r#""a", "b""#);
        assert!(condition.holds(r#""b""#));
        assert!(!condition.holds(r#""c""#));
        assert!(!IfMatch::read(r#"W/"a""#).holds(r#""a""#));
        assert!(IfMatch::read(" * ").holds(r#""anything""#));
    }
}
