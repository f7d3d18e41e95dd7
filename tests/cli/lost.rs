//! Answers that are lost on the way: what was asked for is asked for again by the same key, and done once.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Shell;
use super::instances::{Town, answer};
use crate::http::project;
use crate::support::mute::Mute;
use crate::support::realm::EXAMPLE;

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_whose_answer_is_lost_makes_one_instance() {
    let town = Town::new().await;
    let mut operator = town.shell("operator");
    town.version().await;
    let wire = Mute::before(&town.url(), &format!("POST {} HTTP", project("/app-instances"))).await;
    operator.set("GPUAAS_BASE_URL", wire.url.clone());
    let up = answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    assert!(wire.has_lost(), "the platform heard it, and its answer was lost");
    let all = operator.ask(&["ps", "--all", "-o", "name"]).await;
    assert_eq!(all.stdout, format!("{}\n", up["id"].as_str().unwrap()), "{all:?}");
    town.end().await;
}

/// Answers a retry of a run as a platform on a bad day, and well in the end. It keeps the keys that it was shown.
#[derive(Clone)]
struct Stumbling {
    keys: Arc<Mutex<Vec<String>>>,
    answer: Value,
}

impl Stumbling {
    fn new(answer: Value) -> Stumbling {
        Stumbling { keys: Arc::default(), answer }
    }

    async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/api/v1/projects/{project}/workflows/{run}/retry", post(stumble))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }
}

async fn stumble(State(one): State<Stumbling>, headers: HeaderMap) -> Response {
    one.keys.lock().unwrap().push(headers["x-idempotency-key"].to_str().unwrap().to_owned());
    match one.keys().len() {
        1 => (StatusCode::BAD_GATEWAY, "<h1>The gateway is sorry</h1>").into_response(),
        2 => {
            let busy = json!({
                "code": "idempotency_in_progress", "message": "It is still running.", "correlation_id": "c", "details": {},
            });
            (StatusCode::CONFLICT, [("retry-after", "1")], Json(busy)).into_response()
        }
        3 => {
            let parts = [Ok("{\"id\":"), Err(io::Error::other("the line broke"))];
            Body::from_stream(futures::stream::iter(parts)).into_response()
        }
        _ => Json(one.answer).into_response(),
    }
}

fn operated(run: Uuid) -> Value {
    json!({
        "id": run, "kind": "instance.deploy", "version": 1, "org_id": null, "project_id": EXAMPLE, "status": "running",
        "subject": null, "requested": null, "stuck_cause": null, "error": null, "correlation_id": "c", "trace_id": null,
        "parent_id": null, "parent_step": null, "retry_of": null, "worker": null, "seq": 1, "allowed_actions": [],
        "created_at": "2026-01-31T12:00:00Z", "started_at": null, "updated_at": "2026-01-31T12:00:00Z", "finished_at": null,
        "workflow": { "id": run, "kind": "instance.deploy", "status": "running", "correlation_id": "c", "href": "/" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_got_no_answer_of_the_platform_is_asked_for_again_by_the_same_key() {
    let run = Uuid::from_u128(7);
    let platform = Stumbling::new(operated(run));
    let shell = Shell::at(platform.listen().await, "anybody");
    let said = shell.ask(&["retry", &run.to_string(), "-o", "name"]).await;
    assert_eq!((said.code, said.stdout), (Some(0), format!("{run}\n")), "{}", said.stderr);
    let keys = platform.keys();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_lost_with_its_answer_is_not_taken_for_one_that_came() {
    let run = Uuid::from_u128(7);
    let mut answer = operated(run);
    answer["secret_already_delivered"] = json!(true);
    let platform = Stumbling::new(answer);
    let shell = Shell::at(platform.listen().await, "anybody");
    let said = shell.ask(&["retry", &run.to_string()]).await;
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("the secret is told only once"), "{said:?}");
}
