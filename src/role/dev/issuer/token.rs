//! The token endpoint: each grant finds the person it speaks for, and all answer alike.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Form, Json};
use domain::Secret;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::oauth_error::{OAuthError, check_client};
use super::people::{self, Person};
use super::{CLIENT, Issuer, device};

const LIFETIME_SECONDS: i64 = 3600;

#[derive(Debug, Deserialize)]
pub struct TokenRequest {
    grant_type: String,
    client_id: Option<String>,
    scope: Option<String>,
    username: Option<String>,
    password: Option<Secret<String>>,
    code: Option<String>,
    redirect_uri: Option<String>,
    code_verifier: Option<String>,
    device_code: Option<String>,
}

/// Who signed in, and what was asked for when they did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub person: &'static Person,
    pub scope: String,
    pub nonce: Option<String>,
}

#[derive(Serialize)]
struct TokenAnswer {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
}

pub async fn token(
    State(issuer): State<Arc<Issuer>>,
    form: Result<Form<TokenRequest>, FormRejection>,
) -> Result<Response, OAuthError> {
    let Form(request) = form?;
    check_client(request.client_id.as_deref())?;
    let signed_in = match request.grant_type.as_str() {
        "password" => by_password(&request)?,
        "authorization_code" => {
            let code = required(request.code.as_deref(), "code is missing")?;
            let redirect_uri = required(request.redirect_uri.as_deref(), "redirect_uri is missing")?;
            let verifier = required(request.code_verifier.as_deref(), "code_verifier is missing")?;
            issuer.codes.redeem(code, redirect_uri, verifier, issuer.clock.now())?
        }
        device::GRANT => {
            let code = required(request.device_code.as_deref(), "device_code is missing")?;
            issuer.devices.redeem(code, issuer.clock.now())?
        }
        _ => {
            let description = "the grants are authorization_code, password and device_code";
            return Err(OAuthError { error: "unsupported_grant_type", description });
        }
    };
    issuer.grant(signed_in)
}

fn by_password(request: &TokenRequest) -> Result<SignedIn, OAuthError> {
    let username = required(request.username.as_deref(), "username is missing")?;
    let password = required(request.password.as_ref(), "password is missing")?;
    let person = people::sign_in(username, password)
        .ok_or(OAuthError::invalid_grant("nobody has this name and password"))?;
    Ok(SignedIn { person, scope: request.scope.clone().unwrap_or_default(), nonce: None })
}

impl Issuer {
    fn grant(&self, SignedIn { person, scope, nonce }: SignedIn) -> Result<Response, OAuthError> {
        let now = self.clock.now().timestamp();
        let mut claims = json!({
            "iss": self.url,
            "sub": person.username,
            "aud": CLIENT,
            "azp": CLIENT,
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
            "jti": Uuid::now_v7(),
            "preferred_username": person.username,
            "scope": scope,
        });
        let access_token = self.sign(&claims)?;
        let is_openid = scope.split(' ').any(|one| one == "openid");
        claims["auth_time"] = json!(now);
        claims["nonce"] = json!(nonce);
        let id_token = is_openid.then(|| self.sign(&claims)).transpose()?;
        let answer =
            TokenAnswer { access_token, token_type: "Bearer", expires_in: LIFETIME_SECONDS, scope, id_token };
        Ok(([(header::CACHE_CONTROL, "no-store")], Json(answer)).into_response())
    }

    fn sign(&self, claims: &serde_json::Value) -> Result<String, OAuthError> {
        self.keys.sign(claims).map_err(|error| {
            tracing::error!(%error, "the issuer cannot sign");
            OAuthError { error: "server_error", description: "the token cannot be signed" }
        })
    }
}

fn required<T>(parameter: Option<T>, missing: &'static str) -> Result<T, OAuthError> {
    parameter.ok_or(OAuthError::invalid_request(missing))
}
