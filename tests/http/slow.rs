//! Callers that send their request a byte at a time, or stop half-way, are not waited for. Meanwhile they hold no
//! connection to the database, and they leave nothing behind.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{Http, Listening, project};
use crate::support::story::Story;

const PATIENCE: Duration = Duration::from_millis(300);

async fn impatient(story: &Story) -> Http {
    let mut http = Http::over(story).await;
    http.state = http.state.clone().receiving_within(PATIENCE);
    http
}

/// The head of a request whose body is longer than what will come.
async fn begin(server: &Listening, path: &str, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: platform\r\ncontent-length: 1000\r\n{head}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

fn bearing(http: &Http) -> String {
    format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", http.token())
}

/// Everything the server says until it hangs up.
async fn whole(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    // The server hangs up on a caller that still talks, so the end may be a reset.
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8(said).unwrap()
}

fn refusal(said: &str) -> (u16, Value) {
    let status = said.split_whitespace().nth(1).unwrap_or_else(|| panic!("no answer: {said:?}"));
    let body = said.split_once("\r\n\r\n").expect("a body").1;
    (status.parse().unwrap(), serde_json::from_str(body).unwrap())
}

async fn rows(story: &Story) -> i64 {
    let count = "select (select count(*) from audit) + (select count(*) from service_accounts)
                      + (select count(*) from idempotency) + (select count(*) from engine.run)";
    sqlx::query_scalar(count).fetch_one(&story.pool).await.unwrap()
}

async fn open_transactions(story: &Story) -> i64 {
    let open = "select count(*) from pg_stat_activity
                where datname = current_database() and state = 'idle in transaction'";
    sqlx::query_scalar(open).fetch_one(&story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_trickles_in_or_stops_is_refused_and_leaves_nothing() {
    let story = Story::new().await;
    let http = impatient(&story).await;
    let server = http.listen().await;
    let before = rows(&story).await;
    let path = project("/service-accounts");
    let key = format!("{}x-idempotency-key: slow\r\n", bearing(&http));

    let mut stopped = begin(&server, &path, &key).await;
    stopped.write_all(br#"{"name":"ha"#).await.unwrap();
    let trickling = begin(&server, &path, &bearing(&http)).await;
    let (from_server, mut to_server) = trickling.into_split();
    let trickle = tokio::spawn(async move {
        while to_server.write_all(b" ").await.is_ok() {
            sleep(PATIENCE / 20).await;
        }
    });
    let mut from_server = from_server;
    let mut first = vec![0; 4096];
    let length = from_server.read(&mut first).await.unwrap();
    trickle.abort();
    let trickled = String::from_utf8(first[..length].to_vec()).unwrap();

    for said in [whole(stopped).await, trickled] {
        let (status, answer) = refusal(&said);
        assert_eq!((status, &answer["code"]), (400, &json!("invalid_request")), "{answer}");
        assert_eq!(answer["message"], "The body took too long to arrive.");
        assert!(answer["correlation_id"].is_string() && answer["details"].is_object(), "{answer}");
    }
    server.close().await;
    assert_eq!(rows(&story).await, before);
    let again = http.send(
        axum::http::Method::POST,
        &path,
        &[("x-idempotency-key", "slow")],
        Some(json!({"name": "one"})),
    );
    assert_eq!(again.await.status, StatusCode::CREATED, "the key stayed free");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_without_a_gate_do_not_wait_either() {
    let story = Story::new().await;
    let server = impatient(&story).await.listen().await;
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let (status, answer) = refusal(&whole(begin(&server, "/api/v1/auth/token-exchange", form).await).await);
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_request")), "{answer}");
    let json = "content-type: application/json\r\n";
    let (status, answer) =
        refusal(&whole(begin(&server, "/api/v1/auth/service-account/token", json).await).await);
    assert_eq!((status, &answer["code"]), (400, &json!("invalid_request")), "{answer}");
    server.close().await;
    story.end().await;
}

/// Many more than the pool has connections. Each knows by `100 Continue` that the server waits for its body.
#[tokio::test(flavor = "multi_thread")]
async fn while_bodies_arrive_nobody_holds_a_connection_to_the_database() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let before = rows(&story).await;
    let expecting = format!("{}expect: 100-continue\r\nx-idempotency-key: k\r\n", bearing(&http));
    let mut callers = Vec::new();
    for _ in 0..60 {
        let mut caller = begin(&server, &project("/service-accounts"), &expecting).await;
        let mut told = [0; 25];
        caller.read_exact(&mut told).await.unwrap();
        assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
        caller.write_all(b"{").await.unwrap();
        callers.push(caller);
    }
    // The engine's own come and go; a caller's would stay for as long as it is slow.
    let pool = http.state.pool.bare();
    while pool.num_idle() < pool.size() as usize || open_transactions(&story).await > 0 {
        tokio::task::yield_now().await;
    }
    http.get(&project("/service-accounts")).await.with(200);
    // All of them hang up half-way.
    drop(callers);
    server.close().await;
    assert_eq!(rows(&story).await, before);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_never_ends_costs_its_connection() {
    let story = Story::new().await;
    let server = impatient(&story).await.listen().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: plat").await.unwrap();
    assert_eq!(whole(stream).await, "");
    server.close().await;
    story.end().await;
}
