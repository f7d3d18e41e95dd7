//! Whatever is sent, the answer is the right refusal in the one error shape, and nothing is written.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};

use super::{Http, admin, project};
use crate::support::story::Story;

async fn sent(http: &Http, content_type: &str, body: impl Into<Body>) -> (u16, Value) {
    let request = Request::post(project("/service-accounts")).header("content-type", content_type);
    let answer = http.open(request.body(body.into()).unwrap()).await;
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).expect("the error shape"))
}

async fn rows_written(story: &Story) -> i64 {
    let count = "select (select count(*) from audit) + (select count(*) from service_accounts)
                      + (select count(*) from idempotency)";
    sqlx::query_scalar(count).fetch_one(&story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_make_no_sense_are_refused_and_leave_nothing() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let before = rows_written(&story).await;
    let json = "application/json";
    let deep = format!("{{\"name\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let huge = format!("{{\"name\":\"{}\"}}", "x".repeat(10 << 20));
    for (what, content_type, body, status, code) in [
        ("a NUL in a name", json, br#"{"name":"a\u0000b","slug":"ab"}"#.to_vec(), 400, "invalid_request"),
        ("bytes that are no text", json, b"{\"name\":\"\xff\xfe\"}".to_vec(), 400, "invalid_request"),
        ("half a surrogate pair", json, br#"{"name":"\ud800"}"#.to_vec(), 400, "invalid_request"),
        ("ten megabytes", json, huge.into_bytes(), 413, "payload_too_large"),
        ("ten thousand levels", json, deep.into_bytes(), 400, "invalid_request"),
        ("a name twice", json, br#"{"name":"one","name":"two"}"#.to_vec(), 400, "invalid_request"),
        ("a number without end", json, br#"{"name":1e999}"#.to_vec(), 400, "invalid_request"),
        ("a number for a text", json, br#"{"name":99999999999999999999}"#.to_vec(), 400, "validation_error"),
        ("nothing at all", json, Vec::new(), 400, "invalid_request"),
        ("half an object", json, b"{\"name\":".to_vec(), 400, "invalid_request"),
        ("a list", json, b"[]".to_vec(), 400, "validation_error"),
        ("XML", "application/xml", b"<name/>".to_vec(), 415, "unsupported_media_type"),
        ("a form", "application/x-www-form-urlencoded", b"name=one".to_vec(), 415, "unsupported_media_type"),
    ] {
        let (got, answer) = sent(&http, content_type, body).await;
        assert_eq!((got, &answer["code"]), (status, &json!(code)), "{what}: {answer}");
    }
    assert_eq!(rows_written(&story).await, before);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strange_paths_and_queries_are_refused_too() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let before = rows_written(&story).await;
    for (path, status, code) in [
        (project("/workflows?kind=%00"), 400, "invalid_request"),
        (project("/workflows?kind=%ff"), 400, "invalid_request"),
        (project("/workflows/%00"), 404, "workflow_not_found"),
        (project("/workflows/%ff"), 400, "invalid_request"),
        (project("/audit?limit=99999999999999999999"), 400, "invalid_request"),
        (project("/audit?cursor=r1.00000000000000000000000000000000"), 400, "invalid_request"),
        (admin("/organizations?cursor=%F0%9F%8C%8D"), 400, "invalid_request"),
    ] {
        let answer = http.get(&path).await.with(status);
        assert_eq!(answer["code"], code, "{path}");
    }
    assert_eq!(rows_written(&story).await, before);
    story.end().await;
}
