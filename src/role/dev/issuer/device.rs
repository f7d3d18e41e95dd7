//! The device grant (RFC 8628): a program without a browser shows a short code, a person types it here and signs in,
//! and the program, which has been asking meanwhile, gets its token.

use std::sync::{Arc, Mutex};

use axum::extract::rejection::FormRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Form, Json};
use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use rand::seq::IndexedRandom;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::oauth_error::{OAuthError, check_client};
use super::page::{self, SignIn};
use super::token::SignedIn;
use super::{Issuer, people};

pub const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

const LIFETIME: TimeDelta = TimeDelta::minutes(10);
const INTERVAL: TimeDelta = TimeDelta::seconds(1);
/// No vowels, so that no words appear, and nothing that looks like something else (RFC 8628, 6.1).
const LETTERS: [char; 20] =
    ['B', 'C', 'D', 'F', 'G', 'H', 'J', 'K', 'L', 'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Z'];

#[derive(Debug, Deserialize)]
pub struct Request {
    client_id: Option<String>,
    #[serde(default)]
    scope: String,
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    user_code: String,
}

#[derive(Debug, Deserialize)]
pub struct Answer {
    user_code: String,
    username: String,
    password: Secret<String>,
}

/// The programs that wait.
#[derive(Default)]
pub struct Devices(Mutex<Vec<Device>>);

struct Device {
    device_code: String,
    user_code: String,
    scope: String,
    signed_in: Option<SignedIn>,
    asked_at: Option<DateTime<Utc>>,
    expires_at: DateTime<Utc>,
}

pub async fn begin(
    State(issuer): State<Arc<Issuer>>,
    form: Result<Form<Request>, FormRejection>,
) -> Result<Response, OAuthError> {
    let Form(request) = form?;
    check_client(request.client_id.as_deref())?;
    let (device_code, user_code) = issuer.devices.begin(request.scope, issuer.clock.now());
    let page = format!("{}/device", issuer.url);
    let body = json!({
        "device_code": device_code,
        "user_code": user_code,
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={user_code}"),
        "expires_in": LIFETIME.num_seconds(),
        "interval": INTERVAL.num_seconds(),
    });
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response())
}

pub async fn ask(Query(Asked { user_code }): Query<Asked>) -> Response {
    form(&user_code, None)
}

pub async fn answer(
    State(issuer): State<Arc<Issuer>>,
    answer: Result<Form<Answer>, FormRejection>,
) -> Response {
    let Ok(Form(Answer { user_code, username, password })) = answer else {
        return form("", Some("Please fill in every field."));
    };
    let Some(person) = people::sign_in(&username, &password) else {
        return form(&user_code, Some("Nobody has this name and password."));
    };
    if !issuer.devices.approve(&user_code, person, issuer.clock.now()) {
        return form(&user_code, Some("No program waits with this code. It may have expired."));
    }
    page::message(StatusCode::OK, "Signed in", "Go back to your program. This page may be closed.")
}

fn form(user_code: &str, problem: Option<&str>) -> Response {
    let first = Some(("Code that your program shows", "user_code", user_code));
    SignIn { title: "Sign in a program", hidden: Vec::new(), first, problem }.show()
}

impl Devices {
    fn begin(&self, scope: String, now: DateTime<Utc>) -> (String, String) {
        let device_code = Uuid::new_v4().simple().to_string();
        let user_code = make_user_code();
        let mut devices = self.0.lock().unwrap_or_else(|held| held.into_inner());
        devices.retain(|device| device.expires_at > now);
        devices.push(Device {
            device_code: device_code.clone(),
            user_code: user_code.clone(),
            scope,
            signed_in: None,
            asked_at: None,
            expires_at: now + LIFETIME,
        });
        (device_code, user_code)
    }

    /// Whether a program was waiting with this code.
    fn approve(&self, user_code: &str, person: &'static people::Person, now: DateTime<Utc>) -> bool {
        let plain = |code: &str| -> String { code.chars().filter(char::is_ascii_alphabetic).collect() };
        let typed = plain(user_code).to_uppercase();
        let mut devices = self.0.lock().unwrap_or_else(|held| held.into_inner());
        let waiting = devices.iter_mut().find(|device| {
            plain(&device.user_code) == typed && device.signed_in.is_none() && device.expires_at > now
        });
        let Some(device) = waiting else { return false };
        device.signed_in = Some(SignedIn { person, scope: device.scope.clone(), nonce: None });
        true
    }

    /// Who signed in for this program; until then, the errors that tell it to go on asking.
    pub fn redeem(&self, device_code: &str, now: DateTime<Utc>) -> Result<SignedIn, OAuthError> {
        let mut devices = self.0.lock().unwrap_or_else(|held| held.into_inner());
        let at = devices.iter().position(|device| device.device_code == device_code);
        let at = at.ok_or(OAuthError::invalid_grant("the device code is unknown or used"))?;
        let device = &mut devices[at];
        if device.expires_at <= now {
            devices.swap_remove(at);
            return Err(OAuthError { error: "expired_token", description: "nobody signed in in time" });
        }
        if let Some(signed_in) = device.signed_in.take() {
            devices.swap_remove(at);
            return Ok(signed_in);
        }
        let too_soon = device.asked_at.is_some_and(|before| now - before < INTERVAL);
        device.asked_at = Some(now);
        if too_soon {
            return Err(OAuthError { error: "slow_down", description: "ask once in every interval" });
        }
        Err(OAuthError { error: "authorization_pending", description: "nobody has signed in yet" })
    }
}

/// `BCDF-GHJK`
fn make_user_code() -> String {
    let mut random = rand::rng();
    let mut half = || -> String { (0..4).filter_map(|_| LETTERS.choose(&mut random)).collect() };
    format!("{}-{}", half(), half())
}
