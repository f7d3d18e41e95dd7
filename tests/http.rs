//! The workflow API's promises, told over the real router on a real database. The client here speaks HTTP in process.

mod bulk_retry;
mod operate;
mod read;
mod schedules;
mod stream;
mod why_stuck;

use api::{Build, State};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;
use uuid::Uuid;

use crate::support::story::Story;

pub struct Http {
    pub state: State,
    router: Router,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text header"))
    }

    /// The body of an answer that must have this status.
    pub fn with(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{:#}", self.body);
        self.body
    }

    /// The ids of a page's items.
    pub fn ids(self) -> Vec<Uuid> {
        let page = self.with(200);
        let items = page["items"].as_array().expect("a page");
        items.iter().map(|item| item["id"].as_str().expect("an id").parse().expect("a uuid")).collect()
    }
}

impl Http {
    pub fn over(story: &Story) -> Http {
        let build = Build { name: "gpuaas", version: "test", git: None, schema: 0 };
        let state = State::new(story.engine.clone(), build);
        Http { router: api::router(state.clone()), state }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], Some(body)).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Some(json) => {
                request = request.header("content-type", "application/json");
                Body::from(json.to_string())
            }
            None => Body::empty(),
        };
        let response = self.open(request.body(body).expect("a request")).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a whole body");
        Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    /// The answer's head, its body still open.
    pub async fn open(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.expect("an answer")
    }
}

/// A route of the project that `Story` starts its runs in.
pub fn project(path: &str) -> String {
    format!("/api/v1/projects/{}{path}", Uuid::from_u128(1))
}

pub fn admin(path: &str) -> String {
    format!("/api/v1/admin{path}")
}
