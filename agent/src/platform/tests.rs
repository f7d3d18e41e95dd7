//! Tokens of a node, against a platform that hands out one and then has no time for others.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::net::TcpListener;

use super::*;

async fn mint(asked: Arc<AtomicU32>, lives: i64) -> Result<Json<Value>, StatusCode> {
    match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Ok(Json(json!({ "access_token": "the-first", "token_type": "Bearer", "expires_in": lives }))),
        _ => Err(StatusCode::TOO_MANY_REQUESTS),
    }
}

/// Its first token is good for so many seconds, and how often it was asked for one.
async fn platform(lives: i64) -> (Platform, Arc<AtomicU32>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let asked = Arc::new(AtomicU32::new(0));
    let minted = Arc::clone(&asked);
    let router = Router::new()
        .route("/internal/v1/nodes/{node}/token", post(move || mint(Arc::clone(&minted), lives)))
        .route("/internal/v1/nodes/{node}/tasks/wait", get(async || Json(json!({ "task": null }))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let identity = Identity {
        node_id: Uuid::nil(),
        name: "gpu-1".to_owned(),
        platform: url,
        issuer: "gpuaas".to_owned(),
        driver: "simulated".to_owned(),
        token_digest: None,
    };
    (Platform::new(identity, Key::generate(), Arc::new(|| DateTime::UNIX_EPOCH)).unwrap(), asked)
}

#[tokio::test]
async fn a_token_that_cannot_be_replaced_is_used_until_it_ends() {
    // Due for another from the beginning, and good for a while.
    let (platform, asked) = platform(30).await;
    for _ in 0..3 {
        platform.next(Duration::ZERO).await.expect("the first is good still");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "another is asked for, and not with every question");
}

#[tokio::test]
async fn a_token_that_has_ended_is_not_used() {
    let (platform, _) = platform(0).await;
    platform.next(Duration::ZERO).await.expect("it was good when it came");
    assert!(matches!(platform.next(Duration::ZERO).await, Err(PlatformFault::Unreachable(_))));
}
