//! `GET /console/login` sends the browser to the issuer; `GET /console/callback` takes it back, with a code. The code
//! counts only together with the cookie of the same attempt, so nobody can be signed in as somebody else by a link.

use axum::extract::{RawQuery, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use chrono::TimeDelta;
use clients::oidc::OidcClaims;
use clients::oidc::code_flow::{CodeFlow, SignInFault};
use domain::ActorType;
use store::{audit, console_sessions, users};

use super::attempt::Attempt;
use super::cookie::{ATTEMPT, SESSION};
use super::message::Message;
use super::session;
use crate::edge::Context;
use crate::error::ApiError;
use crate::state::State;

/// A working day. Then the issuer is asked again who this is.
const LIFETIME: TimeDelta = TimeDelta::hours(12);
/// As long as somebody may take to find their password.
const PATIENCE_SECONDS: i64 = 600;

pub(super) async fn begin(Shared(state): Shared<State>, RawQuery(query): RawQuery) -> Response {
    let Some(flow) = &state.console.sign_in else { return Message::NO_ISSUER.show() };
    let return_to = parameter(query.as_deref(), "return_to");
    let attempt = Attempt::begin(return_to.as_deref());
    match flow.address(attempt.as_asked()).await {
        Ok(address) => {
            let kept = ATTEMPT.set(&attempt.cookie(), PATIENCE_SECONDS, state.console.https);
            go_to(&address, [kept])
        }
        Err(fault) => refused(&fault),
    }
}

pub(super) async fn finish(
    Shared(state): Shared<State>,
    context: Context,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(flow) = &state.console.sign_in else { return Message::NO_ISSUER.show() };
    let https = state.console.https;
    let attempt = ATTEMPT.read(&headers, https).and_then(Attempt::from_cookie);
    let mut answer = match answered(flow, attempt.as_ref(), query.as_deref()).await {
        Err(message) => message,
        Ok((claims, return_to)) => match open(&state, &context, &headers, &claims).await {
            Ok(secret) => go_to(return_to, [SESSION.set(&secret, LIFETIME.num_seconds(), https)]),
            Err(error) => {
                tracing::warn!(code = %error.code, "a session could not be kept");
                Message::UNAVAILABLE.show()
            }
        },
    };
    // An attempt counts once, however it ends.
    answer.headers_mut().append(header::SET_COOKIE, ATTEMPT.clear(https));
    answer
}

/// Who signed in and where they wanted to go, if the issuer's answer belongs to this browser's attempt.
async fn answered<'a>(
    flow: &CodeFlow,
    attempt: Option<&'a Attempt>,
    query: Option<&str>,
) -> Result<(OidcClaims, &'a str), Response> {
    let attempt = attempt.ok_or_else(|| Message::NOT_BEGUN.show())?;
    let state = parameter(query, "state").unwrap_or_default();
    let issuer = parameter(query, "iss");
    // An issuer that names itself must be the one that was asked (RFC 9207).
    let of_another = issuer.is_some_and(|issuer| issuer != flow.issuer());
    if !session::same(state.as_bytes(), attempt.state.as_bytes()) || of_another {
        return Err(Message::NOT_BEGUN.show());
    }
    let code = parameter(query, "code").ok_or_else(|| Message::REFUSED.show())?;
    let claims = flow.redeem(&code, attempt.as_asked()).await.map_err(|fault| refused(&fault))?;
    Ok((claims, &attempt.return_to))
}

/// Always a new session, so that a cookie planted beforehand is worth nothing; the one before it ends.
async fn open(
    state: &State,
    context: &Context,
    headers: &HeaderMap,
    claims: &OidcClaims,
) -> Result<String, ApiError> {
    let secret = session::random();
    let mut tx = state.write().await?;
    if let Some(before) = session::presented(state, headers) {
        console_sessions::delete(&mut tx, &before.digest()).await?;
    }
    let name = claims.username.as_deref().unwrap_or(&claims.subject);
    let user = users::sign_in(&mut tx, &claims.issuer, &claims.subject, name).await?;
    console_sessions::insert(&mut tx, &session::digest(&secret), user.id, LIFETIME).await?;
    let entry = audit::NewEntry {
        actor_id: Some(user.id),
        actor_type: Some(ActorType::User.as_str()),
        action: "console_sign_in".to_owned(),
        target: format!("user:{}", user.id),
        ..context.entry()
    };
    audit::insert(&mut tx, &entry).await?;
    tx.commit().await?;
    state.identity.distrust();
    Ok(secret)
}

fn go_to<const N: usize>(address: &str, cookies: [HeaderValue; N]) -> Response {
    let Ok(address) = HeaderValue::from_str(address) else { return Message::UNAVAILABLE.show() };
    let cookies = AppendHeaders(cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    let head = [(header::LOCATION, address), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, head, cookies).into_response()
}

fn refused(fault: &SignInFault) -> Response {
    tracing::warn!(error = %fault, "a person could not sign in");
    match fault {
        SignInFault::Unavailable { .. } => Message::UNAVAILABLE.show(),
        _ => Message::REFUSED.show(),
    }
}

/// Of a name that appears twice, neither value is believed.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut named = url::form_urlencoded::parse(query?.as_bytes()).filter(|(given, _)| given == name);
    let (_, first) = named.next()?;
    named.next().is_none().then(|| first.into_owned())
}
