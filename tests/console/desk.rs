//! An issuer for the browser of a story. Everybody is signed in who asks; a code says who and in answer to what, and
//! counts once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use api::Console;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use clients::oidc::code_flow::CodeFlow;
use clients::oidc::{Issuer, IssuerKeys, Verifier};
use clients::signing::SigningKeys;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::realm::{self, AUDIENCE, Realm};

struct Desk {
    url: String,
    realm: Realm,
    used: Mutex<HashSet<String>>,
}

/// What makes a platform send its people here. Its people are those of the realm.
pub async fn console(realm: &Realm, https: bool) -> Console {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let trusted = Issuer {
        name: realm::ISSUER.to_owned(),
        url: url.clone(),
        audiences: vec![AUDIENCE.to_owned()],
        keys: IssuerKeys::Given(SigningKeys::one(realm.issuer.clone()).public()),
    };
    let verifier = Verifier::new(vec![trusted], true, realm.clock.clone()).expect("a verifier");
    let back = format!("{}/console/callback", realm::PLATFORM);
    let flow = CodeFlow::new(&url, AUDIENCE, back, Arc::new(verifier), true).expect("a flow");
    let desk = Arc::new(Desk { url, realm: realm.clone(), used: Mutex::default() });
    let router = Router::new()
        .route("/.well-known/openid-configuration", get(discovery))
        .route("/token", post(token))
        .with_state(desk);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Console { files: super::pages::FILES, sign_in: Some(Arc::new(flow)), https }
}

async fn discovery(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let url = &desk.url;
    Json(json!({
        "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
    }))
}

/// The code is `username/nonce/challenge`; the verifier must fit the challenge, as at any issuer.
async fn token(State(desk): State<Arc<Desk>>, Form(sent): Form<Vec<(String, String)>>) -> Response {
    let field =
        |name: &str| sent.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value.as_str());
    let code = field("code");
    let parts: Vec<&str> = code.split('/').collect();
    let [username, nonce, challenge] = parts[..] else { return StatusCode::BAD_REQUEST.into_response() };
    let first = desk.used.lock().expect("the desk").insert(code.to_owned());
    if !first || super::browser::challenge(field("code_verifier")) != challenge {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let mut claims = desk.realm.claims(username);
    claims["iss"] = json!(desk.url);
    claims["nonce"] = json!(nonce);
    Json(json!({ "id_token": desk.realm.sign(&claims) })).into_response()
}
