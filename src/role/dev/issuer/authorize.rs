//! The authorization code grant with PKCE (RFC 7636): a browser signs in here and carries a code back to a program
//! of this machine, which alone can turn it into tokens, once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use axum::Form;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use url::Url;
use uuid::Uuid;

use super::oauth_error::{OAuthError, check_client};
use super::page::{self, SignIn};
use super::token::SignedIn;
use super::{Issuer, people};

const LIFETIME: TimeDelta = TimeDelta::seconds(60);

/// What a program asks for; the page carries it along until somebody signs in.
#[derive(Debug, Deserialize)]
pub struct Request {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    code_challenge: Option<String>,
    code_challenge_method: Option<String>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    state: String,
    nonce: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Answer {
    #[serde(flatten)]
    request: Request,
    username: String,
    password: Secret<String>,
}

/// Codes that were handed out and not yet redeemed.
#[derive(Default)]
pub struct Codes(Mutex<HashMap<String, Code>>);

struct Code {
    signed_in: SignedIn,
    redirect_uri: String,
    challenge: String,
    expires_at: DateTime<Utc>,
}

pub async fn ask(query: Result<Query<Request>, QueryRejection>) -> Response {
    match query.map_err(OAuthError::from) {
        Ok(Query(request)) => match request.check() {
            Ok(_) => request.page(None),
            Err(refusal) => *refusal,
        },
        Err(error) => refused(error),
    }
}

pub async fn answer(
    State(issuer): State<Arc<Issuer>>,
    form: Result<Form<Answer>, FormRejection>,
) -> Response {
    let Answer { request, username, password } = match form.map_err(OAuthError::from) {
        Ok(Form(answer)) => answer,
        Err(error) => return refused(error),
    };
    let (redirect, challenge) = match request.check() {
        Ok(checked) => checked,
        Err(refusal) => return *refusal,
    };
    let Some(person) = people::sign_in(&username, &password) else {
        return request.page(Some("Nobody has this name and password."));
    };
    let signed_in = SignedIn { person, scope: request.scope.clone(), nonce: request.nonce.clone() };
    let redirect_uri = request.redirect_uri.clone();
    let expires_at = issuer.clock.now() + LIFETIME;
    let code = issuer.codes.hand_out(Code { signed_in, redirect_uri, challenge, expires_at });
    back_to(redirect, &[("code", &code), ("state", &request.state), ("iss", &issuer.url)])
}

impl Request {
    /// The address to go back to and the challenge. Until the address is known to be safe, nobody is sent there; after
    /// that, errors travel back to the program (RFC 6749, 4.1.2.1). Boxed because a response is large.
    fn check(&self) -> Result<(Url, String), Box<Response>> {
        check_client(Some(&self.client_id)).map_err(|error| Box::new(refused(error)))?;
        let redirect = Url::parse(&self.redirect_uri).ok().filter(is_of_this_machine).ok_or_else(|| {
            let why =
                "redirect_uri must be http://127.0.0.1, http://[::1] or http://localhost, without a fragment";
            Box::new(refused(OAuthError::invalid_request(why)))
        })?;
        let problem = |error: &str| {
            Err(Box::new(back_to(redirect.clone(), &[("error", error), ("state", &self.state)])))
        };
        if self.response_type != "code" {
            return problem("unsupported_response_type");
        }
        match (&self.code_challenge, self.code_challenge_method.as_deref()) {
            (Some(challenge), Some("S256")) if challenge.len() == 43 => Ok((redirect, challenge.clone())),
            _ => problem("invalid_request"),
        }
    }

    fn page(&self, problem: Option<&str>) -> Response {
        let mut hidden = vec![
            ("response_type", self.response_type.as_str()),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &self.scope),
            ("state", &self.state),
        ];
        let optional = [
            ("code_challenge", &self.code_challenge),
            ("code_challenge_method", &self.code_challenge_method),
            ("nonce", &self.nonce),
        ];
        hidden.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        SignIn { title: "Sign in to gpuaas dev", hidden, first: None, problem }.show()
    }
}

impl Codes {
    fn hand_out(&self, code: Code) -> String {
        let name = Uuid::new_v4().simple().to_string();
        let mut codes = self.0.lock().unwrap_or_else(|held| held.into_inner());
        let handed_out_at = code.expires_at - LIFETIME;
        codes.retain(|_, code| code.expires_at > handed_out_at);
        codes.insert(name.clone(), code);
        name
    }

    /// A code counts once, even when it is shown with the wrong verifier.
    pub fn redeem(
        &self,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
        now: DateTime<Utc>,
    ) -> Result<SignedIn, OAuthError> {
        let taken = self.0.lock().unwrap_or_else(|held| held.into_inner()).remove(code);
        let code = taken.filter(|code| code.expires_at > now);
        let code = code.ok_or(OAuthError::invalid_grant("the code is unknown, used or expired"))?;
        if code.redirect_uri != redirect_uri {
            return Err(OAuthError::invalid_grant("redirect_uri is not the one the code was made for"));
        }
        if BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) != code.challenge {
            return Err(OAuthError::invalid_grant("code_verifier does not fit the challenge"));
        }
        Ok(code.signed_in)
    }
}

/// Codes are handed only to programs of the person who signs in.
fn is_of_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let local = host == "localhost" || literal.is_ok_and(|address| address.is_loopback());
    local && matches!(url.scheme(), "http" | "https") && url.fragment().is_none()
}

fn back_to(mut redirect: Url, parameters: &[(&str, &str)]) -> Response {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    redirect.query_pairs_mut().extend_pairs(given);
    match HeaderValue::from_str(redirect.as_str()) {
        Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
        Err(_) => refused(OAuthError::invalid_request("redirect_uri cannot be followed")),
    }
}

fn refused(error: OAuthError) -> Response {
    page::message(StatusCode::BAD_REQUEST, "This cannot go on", error.description)
}
