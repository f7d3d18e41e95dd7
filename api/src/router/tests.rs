//! What every request may rely on, asked of the real router in process. No database answers here on purpose: these
//! promises hold before and without it. Who may come in is decided elsewhere, so most of them ask behind the gates.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::middleware::Next;
use chrono::TimeDelta;
use clients::clock::SystemClock;
use clients::oidc::Verifier;
use clients::seal::Sealer;
use clients::signing::{SigningKey, SigningKeys};
use clients::tokens::{Bearer, Minter};
use domain::{ActorType, Principal, Scope};
use engine::{Engine, Settings};
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use tower::ServiceExt;

use store::principals::Standing;

use super::*;
use crate::caller::Caller;
use crate::edge::Context;
use crate::state::{Build, Keys};

const RUN: &str =
    "/api/v1/projects/01968d5a-0000-7000-8000-000000000001/workflows/01968d5a-0000-7000-8000-000000000002";
const LIST: &str = "/api/v1/projects/01968d5a-0000-7000-8000-000000000001/workflows";

fn state() -> State {
    // Port 1 refuses at once.
    let nowhere = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(1).username("nobody");
    let build = Build { name: "gpuaas", version: "0.0.0", git: None, schema: 1 };
    let clock = Arc::new(SystemClock);
    let verifier = Arc::new(Verifier::new(Vec::new(), false, clock.clone()).unwrap());
    let signing = SigningKeys::one(SigningKey::generate().unwrap());
    let minter = Minter::new("https://gpuaas.test", "gpuaas", signing, clock.clone());
    let sealer = Sealer::from_lines(Sealer::generate_line("test").expose()).unwrap();
    State::new(Engine::new(nowhere, Settings::default()), build, Keys { verifier, minter, clock, sealer })
}

/// Every route as it is behind its gate, which let somebody in who holds nothing.
fn behind_the_gates(state: State) -> Router {
    let mut router = Router::new();
    for route in routes() {
        router = router.route(&route.path, route.endpoint.mount(route.filter()));
    }
    layered(router.layer(middleware::from_fn(let_in)), Router::new(), state)
}

async fn let_in(mut request: extract::Request, next: Next) -> Response {
    let principal = Principal { id: uuid::Uuid::nil(), actor_type: ActorType::User, grants: Vec::new() };
    let (name, platform_role) = ("nobody".to_owned(), None);
    let standing = Arc::new(Standing {
        principal,
        name,
        platform_role,
        requests_per_minute: 1,
        instance: None,
        key_id: None,
        version: 1,
    });
    let context = request.extensions().get::<Context>().cloned().unwrap();
    let scope = Scope::Platform;
    request.extensions_mut().insert(Caller { standing, scope, demand: None, operation: "test", context });
    next.run(request).await
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
    text: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts the one error shape.
    fn is_error(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.body["code"], code, "{}", self.text);
        assert_eq!(self.body["correlation_id"], self.header("x-correlation-id"));
        assert!(self.body["message"].is_string() && self.body["details"].is_object(), "{}", self.text);
        assert_eq!(self.header("content-type"), "application/json");
    }

    fn pointers(&self) -> Vec<&str> {
        self.body["details"]["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["pointer"].as_str().unwrap())
            .collect()
    }
}

async fn ask(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { status, headers, body: serde_json::from_str(&text).unwrap_or_default(), text }
}

async fn send(request: Request<Body>) -> Answer {
    ask(router(state(), Router::new()), request).await
}

/// Sends it to where the gates have been passed.
async fn send_inside(request: Request<Body>) -> Answer {
    ask(behind_the_gates(state()), request).await
}

async fn read_inside(path: &str) -> Answer {
    send_inside(Request::get(path).body(Body::empty()).unwrap()).await
}

async fn read(path: &str) -> Answer {
    send(Request::get(path).body(Body::empty()).unwrap()).await
}

async fn post_json(path: &str, body: &Value) -> Answer {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    send_inside(request.body(Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_request_id_is_echoed_under_both_names() {
    let answer =
        send(Request::get("/livez").header("x-request-id", "deploy:42.a_b-c").body(Body::empty()).unwrap())
            .await;
    assert_eq!(answer.header("x-request-id"), "deploy:42.a_b-c");
    assert_eq!(answer.header("x-correlation-id"), "deploy:42.a_b-c");
}

#[tokio::test]
async fn a_request_without_id_is_given_one() {
    let answer = read("/livez").await;
    assert!(answer.header("x-request-id").parse::<uuid::Uuid>().is_ok());
    assert_eq!(answer.header("x-request-id"), answer.header("x-correlation-id"));
}

#[tokio::test]
async fn a_request_id_that_breaks_the_rules_is_refused_and_not_echoed() {
    for bad in ["a b", "", "a/b", &"x".repeat(129)] {
        let answer =
            send(Request::get("/livez").header("x-request-id", bad).body(Body::empty()).unwrap()).await;
        answer.is_error(400, "invalid_request");
        assert_ne!(answer.header("x-request-id"), bad);
    }
}

#[tokio::test]
async fn two_request_ids_are_refused() {
    let request = Request::get("/livez").header("x-request-id", "a").header("x-request-id", "b");
    send(request.body(Body::empty()).unwrap()).await.is_error(400, "invalid_request");
}

#[tokio::test]
async fn unknown_paths_and_methods_have_the_error_shape() {
    read("/api/v1/nothing/here").await.is_error(404, "route_not_found");
    let answer = send(Request::delete(LIST).body(Body::empty()).unwrap()).await;
    answer.is_error(405, "method_not_allowed");
    assert!(answer.header("allow").contains("GET"));
}

#[tokio::test]
async fn problem_json_is_answered_to_those_who_accept_it() {
    let request =
        Request::get("/nowhere").header(header::ACCEPT, "application/problem+json, application/json;q=0.5");
    let answer = send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.body["type"], "urn:gpuaas:error:route_not_found");
    assert_eq!((&answer.body["status"], &answer.body["code"]), (&json!(404), &json!("route_not_found")));
}

#[tokio::test]
async fn a_panic_is_an_internal_error_that_tells_nothing() {
    let state = state();
    let panicking = Router::new().route("/panic", plain_get(|| async { panic!("the secret is 42") as () }));
    let request = Request::get("/panic").header("x-request-id", "who").body(Body::empty()).unwrap();
    let answer = ask(layered(panicking, Router::new(), state), request).await;
    answer.is_error(500, "internal_error");
    assert_eq!(answer.body["correlation_id"], "who");
    assert!(!answer.text.contains("42"));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let huge = json!({ "reason": "x".repeat(body::MAX_BYTES) });
    post_json(&format!("{RUN}/pause"), &huge).await.is_error(413, "payload_too_large");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let text = Request::post(format!("{RUN}/pause"))
        .header(header::CONTENT_TYPE, "text/plain")
        .body(Body::from("hi"));
    send_inside(text.unwrap()).await.is_error(415, "unsupported_media_type");
    let broken = Request::post(format!("{RUN}/pause"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from("{"));
    send_inside(broken.unwrap()).await.is_error(400, "invalid_request");
}

#[tokio::test]
async fn every_problem_of_a_body_is_listed() {
    let answer =
        post_json("/api/v1/admin/workflows/bulk-retry", &json!({ "ids": [1], "dry_run": 2, "colour": 3 }))
            .await;
    answer.is_error(400, "validation_error");
    let mut pointers = answer.pointers();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/colour", "/dry_run", "/ids/0"]);
}

#[tokio::test]
async fn every_problem_of_a_query_is_listed() {
    let answer = read_inside(&format!(
        "{LIST}?limit=0&cursor=x&status=happy&cause=bad&since=today&correlation_id=a%20b&colour=red"
    ))
    .await;
    answer.is_error(400, "invalid_request");
    let mut pointers = answer.pointers();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/cause", "/colour", "/correlation_id", "/cursor", "/limit", "/since", "/status"]);
}

#[tokio::test]
async fn a_wait_must_be_short_and_understood() {
    for wait in ["61s", "soon", "-1s"] {
        read_inside(&format!("{RUN}?wait={wait}")).await.is_error(400, "invalid_request");
    }
}

#[tokio::test]
async fn ids_that_are_no_ids_name_nothing() {
    read_inside("/api/v1/admin/workflows/first").await.is_error(404, "workflow_not_found");
}

#[tokio::test]
async fn without_a_token_nobody_comes_in() {
    for route in routes().iter().filter(|route| route.access != Public) {
        let path = route.path.replace("{project_id}", "1").replace(['{', '}'], "");
        let request = Request::builder().method(route.method.clone()).uri(&path);
        let answer = send(request.body(Body::empty()).unwrap()).await;
        answer.is_error(401, "token_missing");
        assert_eq!(answer.header("www-authenticate"), "Bearer", "{path}");
    }
}

#[tokio::test]
async fn a_token_that_is_none_is_refused_without_asking_anybody() {
    for token in ["garbage", "a.b.c", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2dwdWFhcy50ZXN0In0."] {
        let request = Request::get(LIST).header(header::AUTHORIZATION, format!("Bearer {token}"));
        let answer = send(request.body(Body::empty()).unwrap()).await;
        answer.is_error(401, "token_invalid");
        assert!(!answer.text.contains(token), "{}", answer.text);
    }
}

#[tokio::test]
async fn without_a_database_callers_are_told_to_come_back() {
    let state = state();
    let bearer = Bearer {
        subject: uuid::Uuid::now_v7(),
        actor_type: ActorType::ServiceAccount,
        org_id: None,
        project_id: None,
        scope: String::new(),
        key_id: None,
        lifetime: TimeDelta::minutes(1),
    };
    let token = state.keys.minter.mint(bearer).unwrap().access_token;
    let authorization = format!("Bearer {}", token.expose());
    let request = Request::get(LIST).header(header::AUTHORIZATION, authorization);
    let answer = ask(router(state, Router::new()), request.body(Body::empty()).unwrap()).await;
    answer.is_error(503, "service_unavailable");
    assert_eq!(answer.header("retry-after"), "1");
    read("/readyz").await.is_error(503, "service_unavailable");
    assert_eq!(read("/livez").await.status, StatusCode::OK);
}

#[tokio::test]
async fn routes_of_other_protocols_keep_their_own_errors() {
    let refuse = || async { (StatusCode::BAD_REQUEST, r#"{"error":"invalid_grant"}"#) };
    let other = Router::new().route("/realms/test/token", plain_get(refuse));
    let request = Request::get("/realms/test/token").body(Body::empty()).unwrap();
    let answer = ask(router(state(), other), request).await;
    assert_eq!((answer.status.as_u16(), answer.body), (400, json!({ "error": "invalid_grant" })));
}

#[tokio::test]
async fn the_build_is_named() {
    assert_eq!(
        read("/version").await.body,
        json!({ "name": "gpuaas", "version": "0.0.0", "git": null, "schema": 1 })
    );
}

#[tokio::test]
async fn requests_are_counted_by_route_template_only() {
    let state = state();
    for path in ["/livez", "/not/a/route", "/nor/this"] {
        ask(router(state.clone(), Router::new()), Request::get(path).body(Body::empty()).unwrap()).await;
    }
    let answer =
        ask(router(state, Router::new()), Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    for line in [
        r#"gpuaas_http_requests_total{method="GET",route="/livez",status="200"} 1"#,
        r#"gpuaas_http_requests_total{method="GET",route="unmatched",status="404"} 2"#,
        "gpuaas_engine_commits_total 0",
    ] {
        assert!(answer.text.contains(line), "{line} is missing from\n{}", answer.text);
    }
    assert!(answer.text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_document_of_events_is_served_and_names_every_type() {
    let document = read("/api/v1/asyncapi.json").await.body;
    assert!(document["asyncapi"].as_str().unwrap().starts_with("3."));
    for kind in domain::EventType::all().map(domain::EventType::as_str) {
        assert!(document["components"]["messages"][kind].is_object(), "{kind} is missing");
    }
}

#[tokio::test]
async fn the_document_is_served_and_names_every_route_with_its_permission() {
    let document = read("/api/v1/openapi.json").await.body;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for route in routes() {
        let operation = &document["paths"][&route.path][route.method.as_str().to_lowercase()];
        assert_eq!(operation["x-permission"], route.access.as_str(), "{} {}", route.method, route.path);
    }
}
