//! Tokens of other issuers, from an issuer on loopback that can be slow, silent, away, or lie about who it is: what is believed, and
//! how often it is asked.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use chrono::TimeDelta;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::clock::ManualClock;
use crate::signing::{SigningKey, SigningKeys};

const AUDIENCE: &str = "gpuaas";

/// An issuer on loopback that publishes what the test says and counts who asks for its keys.
struct Published {
    url: String,
    speaks_as: Mutex<String>,
    keys: Mutex<Value>,
    down: AtomicBool,
    silent: AtomicBool,
    reads: AtomicUsize,
}

impl Published {
    async fn start(keys: Value) -> Arc<Published> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/realm", listener.local_addr().unwrap());
        let issuer = Arc::new(Published {
            speaks_as: Mutex::new(url.clone()),
            url,
            keys: Mutex::new(keys),
            down: AtomicBool::default(),
            silent: AtomicBool::default(),
            reads: AtomicUsize::default(),
        });
        let router = Router::new()
            .route("/realm/.well-known/openid-configuration", get(discovery))
            .route("/realm/keys", get(keys_document))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    fn publish(&self, keys: Value) {
        *self.keys.lock().unwrap() = keys;
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

async fn discovery(State(issuer): State<Arc<Published>>) -> Json<Value> {
    let speaks_as = issuer.speaks_as.lock().unwrap().clone();
    Json(json!({ "issuer": speaks_as, "jwks_uri": format!("{}/keys", issuer.url) }))
}

async fn keys_document(State(issuer): State<Arc<Published>>) -> Result<Json<Value>, StatusCode> {
    issuer.reads.fetch_add(1, Ordering::SeqCst);
    if issuer.silent.load(Ordering::SeqCst) {
        return std::future::pending().await;
    }
    if issuer.down.load(Ordering::SeqCst) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    Ok(Json(issuer.keys.lock().unwrap().clone()))
}

fn published(key: &SigningKey) -> Value {
    serde_json::to_value(SigningKeys::one(key.clone()).public()).unwrap()
}

struct Story {
    issuer: Arc<Published>,
    key: SigningKey,
    clock: Arc<ManualClock>,
    verifier: Verifier,
}

impl Story {
    async fn begin() -> Story {
        let key = SigningKey::generate().unwrap();
        let issuer = Published::start(published(&key)).await;
        let clock = Arc::new(ManualClock::at(DateTime::from_timestamp(1_800_000_000, 0).unwrap()));
        let trusted = Issuer {
            name: "people".to_owned(),
            url: issuer.url.clone(),
            audiences: vec![AUDIENCE.to_owned()],
            keys: IssuerKeys::Discovered,
        };
        let verifier = Verifier::new(vec![trusted], true, clock.clone()).unwrap();
        Story { issuer, key, clock, verifier }
    }

    fn claims(&self) -> Value {
        let now = self.clock.now().timestamp();
        json!({
            "iss": self.issuer.url, "sub": "ada-1", "aud": [AUDIENCE, "account"], "iat": now, "exp": now + 300,
            "preferred_username": "ada", "email": "ada@example.test",
        })
    }

    fn token(&self, changes: Value) -> String {
        let mut claims = self.claims();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.sign(&claims).unwrap()
    }

    async fn verify(&self, changes: Value) -> Result<OidcClaims, TokenFault> {
        self.verifier.verify(&self.token(changes)).await
    }
}

#[tokio::test]
async fn a_token_of_a_trusted_issuer_tells_who_it_is_about() {
    let story = Story::begin().await;
    let claims = story.verify(json!({})).await.unwrap();
    assert_eq!((claims.subject.as_str(), claims.username.as_deref()), ("ada-1", Some("ada")));
    assert_eq!(claims.issuer, "people", "recorded under its name, not its address");
    assert!(!format!("{claims:?}").contains("ada@"), "no addresses in logs");
}

#[tokio::test]
async fn every_claim_that_does_not_fit_is_refused() {
    let story = Story::begin().await;
    let now = story.clock.now().timestamp();
    let fault = async |changes| story.verify(changes).await.unwrap_err();
    assert_eq!(fault(json!({ "aud": "other" })).await, TokenFault::WrongAudience);
    assert_eq!(fault(json!({ "exp": now - 31 })).await, TokenFault::Expired);
    assert_eq!(fault(json!({ "iat": now + 60 })).await, TokenFault::Invalid("it was issued in the future"));
    assert_eq!(fault(json!({ "nbf": now + 60 })).await, TokenFault::Invalid("it is not valid yet"));
    assert_eq!(
        fault(json!({ "iss": "https://evil.example" })).await,
        TokenFault::Invalid("its issuer is not trusted")
    );
    assert_eq!(fault(json!({ "sub": "" })).await, TokenFault::Invalid("it names no subject"));
    assert!(story.verify(json!({ "exp": now - 29 })).await.is_ok(), "clocks may differ a little");
}

#[tokio::test]
async fn forged_signatures_are_refused() {
    let story = Story::begin().await;
    let header = |algorithm| Header { kid: Some(story.key.id().to_owned()), ..Header::new(algorithm) };
    let public = story.key.public_key_pem().unwrap();
    let secret = EncodingKey::from_secret(public.as_bytes());
    let confused = jsonwebtoken::encode(&header(Algorithm::HS256), &story.claims(), &secret).unwrap();
    let stranger = SigningKey::generate().unwrap();
    let stolen_name = {
        let pem = stranger.private_key_pem().unwrap();
        let key = EncodingKey::from_ed_pem(pem.expose().as_bytes()).unwrap();
        jsonwebtoken::encode(&header(Algorithm::EdDSA), &story.claims(), &key).unwrap()
    };
    let genuine = story.token(json!({}));
    let payload = genuine.split('.').nth(1).unwrap();
    for (name, token) in [
        ("HS256 with the public key as secret", confused),
        ("alg none", format!("eyJhbGciOiJub25lIn0.{payload}.")),
        ("another key under the same name", stolen_name),
        ("an unknown key", stranger.sign(&story.claims()).unwrap()),
        ("garbage", "a.b.c".to_owned()),
    ] {
        let fault = story.verifier.verify(&token).await.unwrap_err();
        assert!(matches!(fault, TokenFault::Invalid(_)), "{name}: {fault:?}");
    }
    assert_eq!(story.verifier.verify("").await.unwrap_err(), TokenFault::Missing);
}

#[tokio::test]
async fn keys_are_read_once_and_again_when_they_rotate() {
    let mut story = Story::begin().await;
    for _ in 0..3 {
        story.verify(json!({})).await.unwrap();
    }
    assert_eq!(story.issuer.reads(), 1, "read once, then remembered");

    story.key = SigningKey::generate().unwrap();
    story.issuer.publish(published(&story.key));
    let unknown = TokenFault::Invalid("it is signed by an unknown key");
    assert_eq!(story.verify(json!({})).await.unwrap_err(), unknown, "asked a moment ago");
    assert_eq!(story.issuer.reads(), 1);
    story.clock.advance(TimeDelta::seconds(10));
    story.verify(json!({})).await.unwrap();
    assert_eq!(story.issuer.reads(), 2, "an unknown key makes us look again");
}

#[tokio::test]
async fn strangers_cannot_make_us_ask_an_issuer_without_end() {
    let story = Story::begin().await;
    for _ in 0..20 {
        let forged = SigningKey::generate().unwrap().sign(&story.claims()).unwrap();
        story.verifier.verify(&forged).await.unwrap_err();
    }
    assert_eq!(story.issuer.reads(), 1);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_believed_by_its_last_keys_for_a_day() {
    let story = Story::begin().await;
    story.verify(json!({})).await.unwrap();
    story.issuer.down.store(true, Ordering::SeqCst);
    story.clock.advance(TimeDelta::hours(23));
    story.verify(json!({})).await.unwrap();
    story.clock.advance(TimeDelta::hours(2));
    let fault = story.verify(json!({})).await.unwrap_err();
    assert!(matches!(fault, TokenFault::IssuerUnavailable { .. }), "{fault:?}");
    story.issuer.down.store(false, Ordering::SeqCst);
    story.clock.advance(TimeDelta::seconds(10));
    story.verify(json!({})).await.unwrap();
}

#[tokio::test]
async fn a_silent_issuer_slows_one_request_and_not_all() {
    let story = Arc::new(Story::begin().await);
    story.verify(json!({})).await.unwrap();
    story.issuer.silent.store(true, Ordering::SeqCst);
    story.clock.advance(TimeDelta::hours(2));
    let asking = tokio::spawn({
        let story = story.clone();
        async move { story.verify(json!({})).await }
    });
    while story.issuer.reads() < 2 {
        tokio::task::yield_now().await;
    }
    story.verify(json!({})).await.unwrap();
    assert!(!asking.is_finished(), "the first still waits for an answer");
    asking.abort();
}

#[tokio::test]
async fn a_document_that_speaks_for_another_issuer_is_not_believed() {
    let story = Story::begin().await;
    *story.issuer.speaks_as.lock().unwrap() = "https://other.example".to_owned();
    let fault = story.verify(json!({})).await.unwrap_err();
    assert!(matches!(fault, TokenFault::IssuerUnavailable { .. }), "{fault:?}");
}

#[tokio::test]
async fn unusable_keys_are_left_out_and_their_neighbours_kept() {
    let story = Story::begin().await;
    let mut keys = published(&story.key);
    let oct = json!({ "kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256" });
    let short = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "short", "x": "AAAA" });
    let unheard_of = json!({ "kty": "NEW", "kid": "new" });
    keys["keys"].as_array_mut().unwrap().extend([oct, short, unheard_of]);
    story.issuer.publish(keys);
    story.verify(json!({})).await.unwrap();
    let header = Header { kid: Some("shared".to_owned()), ..Header::new(Algorithm::HS256) };
    let forged =
        jsonwebtoken::encode(&header, &story.claims(), &EncodingKey::from_secret(b"secret")).unwrap();
    assert!(story.verifier.verify(&forged).await.is_err());
}

#[tokio::test]
async fn a_project_may_trust_an_issuer_of_its_own() {
    let story = Story::begin().await;
    let token = story.token(json!({ "aud": "ci" }));
    let issuer = jwt::claimed_issuer(&token).unwrap();
    let claims = story.verifier.verify_federated(&token, &issuer, "ci").await.unwrap();
    assert_eq!(claims.subject, "ada-1");
    let fault = story.verifier.verify_federated(&token, &issuer, "other").await.unwrap_err();
    assert_eq!(fault, TokenFault::WrongAudience);
}

#[test]
fn issuers_must_be_reached_safely() {
    let clock = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH));
    let verifier = |url: &str, loopback_http| {
        let issuer = Issuer {
            name: url.to_owned(),
            url: url.to_owned(),
            audiences: vec!["a".to_owned()],
            keys: IssuerKeys::Discovered,
        };
        Verifier::new(vec![issuer], loopback_http, clock.clone())
    };
    assert!(verifier("https://login.corp.example", false).is_ok());
    assert!(verifier("http://127.0.0.1:8080/realm", true).is_ok());
    for url in ["http://login.example", "http://127.0.0.1:8080", "ftp://login.example", "login.example"] {
        assert!(matches!(verifier(url, false), Err(SetupFault::Address(_))), "{url}");
    }
    assert!(verifier("http://login.example", true).is_err(), "plain http never leaves the machine");

    let verifier = Verifier::new(Vec::new(), false, clock).unwrap();
    assert!(verifier.may_federate("https://token.actions.githubusercontent.com"));
    for url in ["https://127.0.0.1", "https://[::1]", "https://169.254.169.254/", "http://ci.example"] {
        assert!(!verifier.may_federate(url), "{url}");
    }
}
