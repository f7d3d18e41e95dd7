//! A session: a secret in the browser's cookie, its digest in a row. The token that guards changes is derived from the
//! same secret, so only a page of this very origin, which may ask for it, can send it.

use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::ErrorCode;
use rand::RngCore;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::console_sessions::{self, Session};

use super::cookie;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

const CSRF_HEADER: &str = "x-csrf-token";

/// A cookie that says to be a session; whether it is one, the table knows.
pub(crate) struct Presented<'a> {
    secret: &'a str,
}

/// What the request shows in place of a token.
pub(crate) fn presented<'a>(state: &State, headers: &'a HeaderMap) -> Option<Presented<'a>> {
    cookie::SESSION.read(headers, state.console.https).map(|secret| Presented { secret })
}

impl Presented<'_> {
    pub(crate) fn digest(&self) -> [u8; 32] {
        digest(self.secret)
    }

    fn csrf_token(&self) -> String {
        derived("csrf", self.secret)
    }

    /// A browser sends cookies also when another site makes it ask; the token, only our own page can send.
    pub(crate) fn may(&self, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
        let sent = headers.get(CSRF_HEADER).map(|value| value.as_bytes());
        if method.is_safe() || sent.is_some_and(|sent| same(sent, self.csrf_token().as_bytes())) {
            return Ok(());
        }
        Err(ApiError::new(
            ErrorCode::TokenInvalid,
            "A change by cookie needs the session's X-CSRF-Token, which GET /console/session tells.",
        ))
    }

    /// Asked anew for every request: a session that was ended anywhere has ended here.
    pub(crate) async fn find(&self, state: &State) -> Result<Session, ApiError> {
        let mut tx = state.read().await?;
        let found = console_sessions::find(&mut tx, &self.digest()).await?;
        tx.rollback().await?;
        found.ok_or_else(|| ApiError::new(ErrorCode::TokenExpired, "The session has ended. Sign in again."))
    }
}

/// `GET /console/session`: until when the browser is signed in, and the token for changes; `null` if it is not. Being
/// signed out is an answer here, no error.
pub(super) async fn show(Shared(state): Shared<State>, headers: HeaderMap) -> Result<Response, ApiError> {
    let session = match presented(&state, &headers) {
        Some(shown) => match shown.find(&state).await {
            Ok(session) => json!({ "csrf_token": shown.csrf_token(), "expires_at": session.expires_at }),
            Err(ended) if ended.code == ErrorCode::TokenExpired => Value::Null,
            Err(error) => return Err(error),
        },
        None => Value::Null,
    };
    let body = json!({ "session": session });
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response())
}

/// 256 bits that nobody can guess, as 43 letters.
pub(super) fn random() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// A word for one purpose, from which neither the secret nor the word for another purpose can be told.
pub(super) fn derived(purpose: &str, secret: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(format!("gpuaas console {purpose}: {secret}")))
}

pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(format!("gpuaas console session: {secret}")).into()
}

/// Compares digests, so that the time it takes tells nothing of where two words differ.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    Sha256::digest(one) == Sha256::digest(other)
}
