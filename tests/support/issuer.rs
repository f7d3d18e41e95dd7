//! Somebody else's issuer on loopback: discovery, keys, and tokens by them.

use axum::routing::get;
use axum::{Json, Router};
use clients::signing::{SigningKey, SigningKeys};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub struct Issuer {
    pub url: String,
    key: SigningKey,
}

impl Issuer {
    pub async fn start() -> Issuer {
        let key = SigningKey::generate().expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let discovery = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") });
        let keys = SigningKeys::one(key.clone()).public();
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(move || async move { Json(discovery) }))
            .route("/keys", get(move || async move { Json(keys) }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Issuer { url, key }
    }

    /// Somebody who claims to be this one.
    pub fn with_another_key(&self) -> Issuer {
        Issuer { url: self.url.clone(), key: SigningKey::generate().expect("a key") }
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.key.sign(claims).expect("a token")
    }
}
