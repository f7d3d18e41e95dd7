//! Somebody who speaks to an agent as the platform does: it hands out whatever a story gives it, signed by whomever, as often
//! and in whichever order the story likes, and keeps what the agent answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use chrono::{TimeDelta, Utc};
use node_protocol::{Envelope, Key, Keyring, Outcome, Secrets, Signed, Signer, SignerState, Task};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

pub struct FalsePlatform {
    pub url: String,
    pub node: Uuid,
    /// The one that the agent was told to believe.
    pub signer: Key,
    inner: Arc<Inner>,
    serving: JoinHandle<()>,
}

struct Inner {
    node: Uuid,
    keyring: Keyring,
    /// What is handed out next.
    tasks: Mutex<VecDeque<Signed>>,
    given: Notify,
    answers: Mutex<Vec<(Uuid, Outcome)>>,
    answered: Notify,
}

impl FalsePlatform {
    pub async fn start() -> FalsePlatform {
        let (signer, node) = (Key::generate(), Uuid::now_v7());
        let public_key = signer.public().to_pem().expect("a key");
        let believed = Signer { key_id: signer.id(), public_key, state: SignerState::Active };
        let inner = Arc::new(Inner {
            node,
            keyring: Keyring { version: 1, signers: vec![believed] },
            tasks: Mutex::default(),
            given: Notify::new(),
            answers: Mutex::default(),
            answered: Notify::new(),
        });
        let router = Router::new()
            .route("/internal/v1/nodes/enroll", post(enrol))
            .route("/internal/v1/nodes/{node}/token", post(token))
            .route("/internal/v1/nodes/{node}/heartbeat", post(|| async { StatusCode::SERVICE_UNAVAILABLE }))
            .route("/internal/v1/nodes/{node}/tasks/wait", get(next))
            .route(
                "/internal/v1/nodes/{node}/tasks/{task}/progress",
                post(|| async { StatusCode::NO_CONTENT }),
            )
            .route("/internal/v1/nodes/{node}/tasks/{task}/result", post(result))
            .with_state(Arc::clone(&inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        FalsePlatform { url, node, signer, inner, serving }
    }

    /// A task of this instance as the platform would write it.
    pub fn task(&self, task: &Task, instance: Uuid, generation: i64) -> Envelope {
        let now = Utc::now();
        let task_id = Uuid::now_v7();
        Envelope {
            task_id,
            node_id: self.node,
            idempotency_key: format!("{task_id}/do"),
            instance_id: Some(instance),
            generation,
            epoch: 1,
            correlation_id: "c-false".to_owned(),
            issued_at: now,
            expires_at: now + TimeDelta::minutes(5),
            lease_seconds: 60,
            kind: task.kind().to_owned(),
            input: task.input().expect("an input"),
            secrets: Secrets::default(),
        }
    }

    pub fn hands_out(&self, task: &Envelope) {
        self.hands_out_signed(Signed::sign(task, &self.signer).expect("a signature"));
    }

    pub fn hands_out_signed(&self, task: Signed) {
        self.inner.tasks.lock().expect("a list").push_back(task);
        self.inner.given.notify_waiters();
    }

    /// Everything the agent answered, once there are so many answers.
    pub async fn answers(&self, count: usize) -> Vec<(Uuid, Outcome)> {
        loop {
            let more = self.inner.answered.notified();
            let answers = self.inner.answers.lock().expect("a list").clone();
            if answers.len() >= count {
                return answers;
            }
            let waited = tokio::time::timeout(Duration::from_secs(30), more).await;
            waited.unwrap_or_else(|_| panic!("the agent answered only {answers:?}"));
        }
    }
}

impl Drop for FalsePlatform {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn enrol(State(inner): State<Arc<Inner>>) -> Json<Value> {
    Json(json!({
        "node_id": inner.node, "name": "gpu-1", "key_id": "any", "issuer": "nobody", "keyring": inner.keyring,
    }))
}

async fn token() -> Json<Value> {
    Json(json!({ "access_token": "any", "token_type": "Bearer", "expires_in": 3600 }))
}

/// One at a time, in the order that they were given; a moment's wait where there is none.
async fn next(State(inner): State<Arc<Inner>>) -> Json<Value> {
    let given = inner.given.notified();
    let task = inner.tasks.lock().expect("a list").pop_front();
    if task.is_none() {
        let _ = tokio::time::timeout(Duration::from_millis(200), given).await;
    }
    Json(json!({ "task": task }))
}

async fn result(
    State(inner): State<Arc<Inner>>,
    Path((_, task)): Path<(Uuid, Uuid)>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let outcome = serde_json::from_value(body["outcome"].clone()).expect("an outcome");
    inner.answers.lock().expect("a list").push((task, outcome));
    inner.answered.notify_waiters();
    Json(json!({ "status": "kept" }))
}
