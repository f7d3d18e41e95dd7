//! A browser that is sent to an issuer and comes back: what it carries on the way, and that what comes back counts for this attempt
//! alone.

use std::sync::Mutex;

use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::clock::ManualClock;
use crate::oidc::{Issuer, IssuerKeys};
use crate::signing::{SigningKey, SigningKeys};

const ATTEMPT: Attempt<'static> = Attempt {
    state: "the-state",
    nonce: "the-nonce",
    verifier: "the-verifier-of-at-least-43-characters-long",
};
const BACK: &str = "https://gpuaas.test/console/callback";

/// An issuer on loopback that answers every code with the claims the test says, and keeps what it was sent.
struct Desk {
    url: String,
    key: SigningKey,
    claims: Mutex<Value>,
    sent: Mutex<Vec<(String, String)>>,
}

impl Desk {
    async fn open() -> (Arc<Desk>, CodeFlow) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::generate().unwrap();
        let now: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let claims = json!({
            "iss": url, "aud": "console", "sub": "ada", "nonce": ATTEMPT.nonce,
            "iat": now.timestamp(), "exp": now.timestamp() + 60,
        });
        let keys = IssuerKeys::Given(SigningKeys::one(key.clone()).public());
        let trusted =
            Issuer { name: "people".to_owned(), url: url.clone(), audiences: vec!["api".to_owned()], keys };
        let desk = Arc::new(Desk { url, key, claims: Mutex::new(claims), sent: Mutex::default() });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/token", post(token))
            .with_state(desk.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let clock = Arc::new(ManualClock::at(now));
        let verifier = Arc::new(Verifier::new(vec![trusted], true, clock).unwrap());
        let flow = CodeFlow::new(&desk.url, "console", BACK.to_owned(), verifier, true).unwrap();
        (desk, flow)
    }

    fn say(&self, name: &str, value: Value) {
        self.claims.lock().unwrap()[name] = value;
    }
}

async fn discovery(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let url = &desk.url;
    let (authorize, token) = (format!("{url}/authorize?tenant=1"), format!("{url}/token"));
    Json(json!({ "issuer": url, "authorization_endpoint": authorize, "token_endpoint": token }))
}

async fn token(State(desk): State<Arc<Desk>>, Form(sent): Form<Vec<(String, String)>>) -> Response {
    let good = sent.contains(&("code".to_owned(), "good & new".to_owned()));
    *desk.sent.lock().unwrap() = sent;
    if !good {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    let id_token = desk.key.sign(&*desk.claims.lock().unwrap()).unwrap();
    Json(json!({ "access_token": "unused", "id_token": id_token })).into_response()
}

#[tokio::test]
async fn the_browser_is_sent_with_a_challenge_and_never_with_the_verifier() {
    let (desk, flow) = Desk::open().await;
    let address: Url = flow.address(ATTEMPT).await.unwrap().parse().unwrap();
    assert!(address.as_str().starts_with(&format!("{}/authorize?tenant=1&", desk.url)), "{address}");
    let pairs: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    for (name, value) in [("redirect_uri", BACK), ("state", ATTEMPT.state), ("nonce", ATTEMPT.nonce)] {
        assert!(pairs.contains(&(name.to_owned(), value.to_owned())), "{name} in {address}");
    }
    assert!(pairs.contains(&("code_challenge_method".to_owned(), "S256".to_owned())), "{address}");
    assert!(!address.as_str().contains(ATTEMPT.verifier), "{address}");
}

#[tokio::test]
async fn a_code_becomes_a_person_and_the_verifier_goes_to_the_issuer() {
    let (desk, flow) = Desk::open().await;
    let claims = flow.redeem("good & new", ATTEMPT).await.unwrap();
    assert_eq!((claims.issuer.as_str(), claims.subject.as_str()), ("people", "ada"));
    let verifier = ("code_verifier".to_owned(), ATTEMPT.verifier.to_owned());
    assert!(desk.sent.lock().unwrap().contains(&verifier));
    assert_eq!(flow.redeem("old", ATTEMPT).await.unwrap_err(), SignInFault::CodeRefused);
}

#[tokio::test]
async fn an_id_token_for_another_attempt_client_or_party_signs_nobody_in() {
    let wrong =
        [("nonce", json!("another")), ("nonce", Value::Null), ("aud", json!("api")), ("azp", json!("api"))];
    for (claim, value) in wrong {
        let (desk, flow) = Desk::open().await;
        desk.say(claim, value.clone());
        let fault = flow.redeem("good & new", ATTEMPT).await.unwrap_err();
        assert!(matches!(fault, SignInFault::Token(_)), "{claim} {value}: {fault}");
    }
}
