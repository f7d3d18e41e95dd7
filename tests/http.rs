//! The API's promises, told over the real router on a real database. The client here speaks HTTP in process.

mod bad_input;
mod bulk_retry;
mod conformance;
mod operate;
mod pressure;
mod read;
mod schedules;
mod slow;
mod stream;
mod why_stuck;

use std::net::SocketAddr;

use api::{Build, Ending, State};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use uuid::Uuid;

use crate::support::realm::{self, Realm};
use crate::support::registry::shelf;
use crate::support::story::Story;

/// Somebody who speaks to the platform.
#[derive(Clone)]
pub struct Http {
    pub state: State,
    pub realm: Realm,
    router: Router,
    /// What is sent as `Authorization: Bearer`; nothing if empty.
    bearer: String,
}

/// A platform behind a real port.
pub struct Listening {
    pub address: SocketAddr,
    ending: Ending,
    serving: JoinHandle<Result<(), api::ServeError>>,
}

impl Listening {
    /// Returns once the last connection has ended.
    pub async fn close(self) {
        self.ending.announced.cancel();
        self.ending.begun.cancel();
        self.serving.await.expect("no panic").expect("it served");
    }
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
    /// The platform's superadmin, in a place where everybody of the realm has settled.
    pub async fn over(story: &Story) -> Http {
        Http::with(story, |state| state.with_depot(shelf())).await
    }

    /// The same, on a platform that has more.
    pub async fn with(story: &Story, more: impl FnOnce(State) -> State) -> Http {
        realm::settle(&story.pool).await;
        let build = Build { name: "gpuaas", version: "test", git: None, schema: 0 };
        let realm = Realm::new();
        let state = State::new(story.engine.clone(), build, realm.keys.clone());
        // Nobody in a story is slowed down unless it is about that.
        let state = more(state.limiting_strangers(1_000_000));
        let (router, bearer) = (api::router(state.clone(), Router::new()), realm.token("admin"));
        Http { router, state, realm, bearer }
    }

    /// The same platform, spoken to by somebody else.
    pub fn acting(&self, username: &str) -> Http {
        self.bearing(&self.realm.token(username))
    }

    pub fn bearing(&self, token: &str) -> Http {
        Http { bearer: token.to_owned(), ..self.clone() }
    }

    /// Another process of the same platform, which shares nothing but the database.
    pub fn elsewhere(&self) -> Http {
        self.with_depot(shelf())
    }

    /// Another process of the same platform, with another registry or other stores.
    pub fn with_depot(&self, depot: api::Depot) -> Http {
        let state = State::new(self.state.engine.clone(), self.state.build.clone(), self.realm.keys.clone());
        let state = state.with_depot(depot);
        Http { router: api::router(state.clone(), Router::new()), state, ..self.clone() }
    }

    /// The same platform, with a page for people; nobody has signed in.
    pub fn with_console(&self, console: api::Console) -> Http {
        let state = self.state.clone().with_console(console);
        Http {
            router: api::router(state.clone(), Router::new()),
            state,
            bearer: String::new(),
            ..self.clone()
        }
    }

    /// The same platform behind a port of its own.
    pub async fn listen(&self) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ending = Ending::default();
        let serving = api::serve(listener, self.state.clone(), Router::new(), ending.clone());
        Listening { address, ending, serving: tokio::spawn(serving) }
    }

    /// What is sent as `Authorization: Bearer`.
    pub fn token(&self) -> &str {
        &self.bearer
    }

    /// For those who speak to the platform over a real connection, until the story ends.
    pub fn listen_on(&self, listener: TcpListener) {
        let router = self.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, &[], Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, &[], Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], None).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let body = body.map(|json| json.to_string());
        self.send_text(method, path, headers, body).await
    }

    /// A body to the letter.
    pub async fn send_text(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Some(text) => {
                request = request.header("content-type", "application/json");
                Body::from(text)
            }
            None => Body::empty(),
        };
        self.answer_to(request.body(body).expect("a request")).await
    }

    /// The whole answer to any request.
    pub async fn answer_to(&self, request: Request<Body>) -> Answer {
        let response = self.open(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a whole body");
        Answer { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    /// The answer's head, its body still open.
    pub async fn open(&self, mut request: Request<Body>) -> axum::response::Response {
        if !self.bearer.is_empty() {
            let value = format!("Bearer {}", self.bearer).parse().expect("a header");
            request.headers_mut().insert("authorization", value);
        }
        self.router.clone().oneshot(request).await.expect("an answer")
    }
}

/// A route of the project that `Story` starts its runs in.
pub fn project(path: &str) -> String {
    format!("/api/v1/projects/{}{path}", realm::EXAMPLE)
}

pub fn organization(path: &str) -> String {
    format!("/api/v1/organizations/{}{path}", realm::DEMO)
}

pub fn admin(path: &str) -> String {
    format!("/api/v1/admin{path}")
}
