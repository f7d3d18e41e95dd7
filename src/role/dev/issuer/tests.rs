//! The issuer of `gpuaas dev` by its own routes: people, browsers and devices get what the protocol gives them, and nobody gets it in
//! their place.

use std::fs;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta};
use clients::clock::ManualClock;
use clients::oidc::Verifier;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tower::ServiceExt;
use url::Url;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::*;

const TOKEN: &str = "/realms/gpuaas/protocol/openid-connect/token";
const AUTHORIZE: &str = "/realms/gpuaas/protocol/openid-connect/auth";
const CALLBACK: &str = "http://127.0.0.1:9999/callback?tab=1";
const VERIFIER: &str = "a-verifier-that-only-the-program-knows-0123456789";

/// The issuer as programs and people meet it, and the platform's judgement of its tokens.
struct Story {
    routes: Router,
    clock: Arc<ManualClock>,
    platform: Verifier,
}

struct Said {
    status: StatusCode,
    location: Option<Url>,
    text: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    fn returned(&self, name: &str) -> Option<String> {
        let location = self.location.as_ref().unwrap();
        location.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

impl Story {
    fn begin() -> Story {
        let folder = std::env::temp_dir().join(format!("gpuaas-issuer-{}", Uuid::new_v4()));
        let story = Story::on(&DataDir::claim(&folder).unwrap());
        fs::remove_dir_all(folder).unwrap();
        story
    }

    fn on(data: &DataDir) -> Story {
        let clock = Arc::new(ManualClock::at(DateTime::from_timestamp(1_800_000_000, 0).unwrap()));
        let issuer = Issuer::open(data, "http://127.0.0.1:8080", clock.clone()).unwrap();
        let platform = Verifier::new(vec![issuer.trust()], false, clock.clone()).unwrap();
        Story { routes: issuer.routes(), clock, platform }
    }

    async fn send(&self, request: Request<Body>) -> Said {
        let answer = self.routes.clone().oneshot(request).await.unwrap();
        let location = answer.headers().get(header::LOCATION).map(|value| value.to_str().unwrap());
        let location = location.map(|address| Url::parse(address).unwrap());
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        Said { status, location, text: String::from_utf8(body.to_vec()).unwrap() }
    }

    async fn get(&self, path: &str) -> Said {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Said {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        let form = Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(form.body(Body::from(body)).unwrap()).await
    }

    async fn authorize(&self, changes: &[(&str, &str)]) -> Said {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", "gpuaas"),
            ("redirect_uri", CALLBACK),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("scope", "openid"),
            ("state", "a b&c"),
            ("nonce", "n-1"),
            ("username", "operator"),
            ("password", "operator"),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.push((name, value));
        }
        self.post(AUTHORIZE, &fields).await
    }

    async fn redeem(&self, code: &str, changes: &[(&str, &str)]) -> Said {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", "gpuaas"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in changes {
            fields.retain(|(known, _)| known != name);
            fields.push((name, value));
        }
        self.post(TOKEN, &fields).await
    }

    /// Who the platform takes the bearer of the answered token for.
    async fn subject(&self, answer: &Said) -> String {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let token = answer.json()["access_token"].as_str().unwrap().to_owned();
        let claims = self.platform.verify(&token).await.unwrap();
        assert_eq!(claims.issuer, NAME);
        claims.subject
    }
}

#[tokio::test]
async fn every_seeded_person_gets_a_token_by_password() {
    let story = Story::begin();
    for name in ["admin", "project-admin", "operator", "publisher", "viewer"] {
        let fields =
            [("grant_type", "password"), ("client_id", "gpuaas"), ("username", name), ("password", name)];
        let answer = story.post(TOKEN, &fields).await;
        assert_eq!(story.subject(&answer).await, name);
        assert_eq!(answer.json()["token_type"], "Bearer");
    }
}

#[tokio::test]
async fn refusals_have_the_protocols_own_shape() {
    let story = Story::begin();
    let password = |client, name, password| {
        [("grant_type", "password"), ("client_id", client), ("username", name), ("password", password)]
    };
    let wrong = story.post(TOKEN, &password("gpuaas", "admin", "hunter2")).await;
    assert_eq!((wrong.status, wrong.error().as_str()), (StatusCode::BAD_REQUEST, "invalid_grant"));
    assert!(!wrong.text.contains("hunter2"));
    let stranger = story.post(TOKEN, &password("other", "admin", "admin")).await;
    assert_eq!((stranger.status, stranger.error().as_str()), (StatusCode::UNAUTHORIZED, "invalid_client"));
    let unknown = story.post(TOKEN, &[("grant_type", "magic"), ("client_id", "gpuaas")]).await;
    assert_eq!(unknown.error(), "unsupported_grant_type");
    let twice = [("grant_type", "password"), ("grant_type", "password"), ("client_id", "gpuaas")];
    assert_eq!(story.post(TOKEN, &twice).await.error(), "invalid_request");
    let json = Request::post(TOKEN).header(header::CONTENT_TYPE, "application/json").body(Body::from("{}"));
    assert_eq!(story.send(json.unwrap()).await.error(), "invalid_request");
}

#[tokio::test]
async fn a_browser_brings_back_a_code_that_counts_once() {
    let story = Story::begin();
    let back = story.authorize(&[]).await;
    assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.text);
    assert!(back.location.as_ref().unwrap().as_str().starts_with(CALLBACK));
    assert_eq!(back.returned("state").as_deref(), Some("a b&c"));
    let code = back.returned("code").unwrap();
    let answer = story.redeem(&code, &[]).await;
    assert_eq!(story.subject(&answer).await, "operator");
    let id_token = answer.json()["id_token"].as_str().unwrap().to_owned();
    assert_eq!(story.platform.verify(&id_token).await.unwrap().claims["nonce"], "n-1");
    assert_eq!(story.redeem(&code, &[]).await.error(), "invalid_grant");
}

#[tokio::test]
async fn a_code_is_worth_nothing_to_anybody_else() {
    let story = Story::begin();
    let code = async || story.authorize(&[]).await.returned("code").unwrap();
    for wrong in [("code_verifier", "guessed"), ("redirect_uri", "http://127.0.0.1:1/")] {
        let code = code().await;
        assert_eq!(story.redeem(&code, &[wrong]).await.error(), "invalid_grant");
        assert_eq!(story.redeem(&code, &[]).await.error(), "invalid_grant", "and it is used up");
    }
    let late = code().await;
    story.clock.advance(TimeDelta::seconds(60));
    assert_eq!(story.redeem(&late, &[]).await.error(), "invalid_grant");
}

#[tokio::test]
async fn nobody_is_sent_to_another_machine_or_without_proof() {
    let story = Story::begin();
    for address in ["https://evil.example/", "http://127.0.0.1.evil.example/", "javascript:alert(1)", ""] {
        let said = story.authorize(&[("redirect_uri", address)]).await;
        assert_eq!((said.status, said.location), (StatusCode::BAD_REQUEST, None), "{address}");
    }
    for weak in [("code_challenge_method", "plain"), ("code_challenge", "short")] {
        let said = story.authorize(&[weak]).await;
        assert_eq!(said.returned("error").as_deref(), Some("invalid_request"));
        assert_eq!(said.returned("code"), None);
    }
    let wrong = story.authorize(&[("password", "hunter2"), ("state", "\"><script>")]).await;
    assert_eq!((wrong.status, wrong.location.is_some()), (StatusCode::BAD_REQUEST, false));
    assert!(wrong.text.contains("Nobody has this name and password."));
    assert!(!wrong.text.contains("<script>") && !wrong.text.contains("hunter2"), "{}", wrong.text);
}

#[tokio::test]
async fn a_device_waits_until_a_person_types_its_code() {
    let story = Story::begin();
    let begun = story.post(&format!("{AUTHORIZE}/device"), &[("client_id", "gpuaas")]).await.json();
    let text = |name: &str| begun[name].as_str().unwrap().to_owned();
    let poll = async || {
        let device_code = text("device_code");
        let fields = [("grant_type", device::GRANT), ("client_id", "gpuaas"), ("device_code", &device_code)];
        story.post(TOKEN, &fields).await
    };
    assert_eq!(poll().await.error(), "authorization_pending");
    assert_eq!(poll().await.error(), "slow_down");

    let page = story.get(&format!("/realms/gpuaas/device?user_code={}", text("user_code"))).await;
    assert!(page.text.contains(&text("user_code")), "{}", page.text);
    let typed = text("user_code").to_lowercase().replace('-', " ");
    let sign_in = async |code: &str| {
        let fields = [("user_code", code), ("username", "viewer"), ("password", "viewer")];
        story.post("/realms/gpuaas/device", &fields).await.status
    };
    assert_eq!(sign_in("BBBB-BBBB").await, StatusCode::BAD_REQUEST);
    assert_eq!(sign_in(&typed).await, StatusCode::OK, "however it is typed");
    assert_eq!(sign_in(&typed).await, StatusCode::BAD_REQUEST, "nobody else can answer it");
    assert_eq!(story.subject(&poll().await).await, "viewer");
    assert_eq!(poll().await.error(), "invalid_grant", "a device code counts once");
}

#[tokio::test]
async fn a_device_that_nobody_answers_expires() {
    let story = Story::begin();
    let begun = story.post(&format!("{AUTHORIZE}/device"), &[("client_id", "gpuaas")]).await.json();
    story.clock.advance(TimeDelta::minutes(10));
    let code = begun["device_code"].as_str().unwrap();
    let fields = [("grant_type", device::GRANT), ("client_id", "gpuaas"), ("device_code", code)];
    assert_eq!(story.post(TOKEN, &fields).await.error(), "expired_token");
}

#[tokio::test]
async fn discovery_names_what_is_served() {
    let story = Story::begin();
    let document = story.get("/realms/gpuaas/.well-known/openid-configuration").await.json();
    assert_eq!(document["issuer"], "http://127.0.0.1:8080/realms/gpuaas");
    let path = |name: &str| Url::parse(document[name].as_str().unwrap()).unwrap().path().to_owned();
    assert_eq!(path("token_endpoint"), TOKEN);
    assert_eq!(path("authorization_endpoint"), AUTHORIZE);
    let keys = story.get(&path("jwks_uri")).await.json();
    assert_eq!(keys["keys"][0]["crv"], "Ed25519");
    assert_eq!(keys["keys"][0].get("d"), None);
}

#[tokio::test]
async fn a_token_outlives_a_restart() {
    let folder = std::env::temp_dir().join(format!("gpuaas-issuer-{}", Uuid::new_v4()));
    let data = DataDir::claim(&folder).unwrap();
    let before = Story::on(&data);
    let fields =
        [("grant_type", "password"), ("client_id", "gpuaas"), ("username", "admin"), ("password", "admin")];
    let answer = before.post(TOKEN, &fields).await;
    assert_eq!(Story::on(&data).subject(&answer).await, "admin");
    fs::remove_dir_all(folder).unwrap();
}
