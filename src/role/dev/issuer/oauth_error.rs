//! How this issuer says no: the errors of RFC 6749 and RFC 8628, as JSON and never cached.

use axum::Json;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OAuthError {
    pub error: &'static str,
    pub description: &'static str,
}

impl OAuthError {
    pub const fn invalid_request(description: &'static str) -> OAuthError {
        OAuthError { error: "invalid_request", description }
    }

    pub const fn invalid_grant(description: &'static str) -> OAuthError {
        OAuthError { error: "invalid_grant", description }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let status =
            if self.error == "invalid_client" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
        let body = json!({ "error": self.error, "error_description": self.description });
        (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
    }
}

impl From<FormRejection> for OAuthError {
    fn from(_: FormRejection) -> OAuthError {
        OAuthError::invalid_request("send each parameter once, as application/x-www-form-urlencoded")
    }
}

impl From<QueryRejection> for OAuthError {
    fn from(_: QueryRejection) -> OAuthError {
        OAuthError::invalid_request("send each parameter once")
    }
}

/// There is one client, and it has no secret.
pub fn check_client(client_id: Option<&str>) -> Result<(), OAuthError> {
    if client_id == Some(super::CLIENT) {
        return Ok(());
    }
    Err(OAuthError { error: "invalid_client", description: "the client is `gpuaas`" })
}
