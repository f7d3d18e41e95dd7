//! Those whom nobody knows: they may try so often, and what they try does not fill the audit log.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use node_protocol::{Key, assert_identity};
use serde_json::{Value, json};
use uuid::Uuid;

use super::service_accounts;
use crate::http::{Answer, Http, admin, project};
use crate::support::node;
use crate::support::realm::{FAR_AWAY, PLATFORM};
use crate::support::story::Story;

const TOKEN: &str = "/api/v1/auth/service-account/token";

/// Asks from an address, without the bearer of a story.
async fn ask(
    http: &Http,
    from: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    let peer: SocketAddr = from.parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    http.bearing("").answer_to(request).await
}

async fn denied(http: &Http, action: &str) -> Vec<Value> {
    let page = http.get(&admin(&format!("/audit?result=denied&action={action}"))).await.with(200);
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_may_ask_so_often_from_one_address_whatever_they_show() {
    let story = Story::new().await;
    let http = Http::with(&story, |state| state.limiting_strangers(4)).await;
    let garbage = [("authorization", "Bearer garbage")];
    let (schema, me) = ("/api/v1/apps/manifest-schema", "/api/v1/me");
    let from = "192.0.2.7:4000";
    let first = ask(&http, from, Method::GET, schema, &[], Value::Null).await;
    assert_eq!(first.header("ratelimit-policy"), "\"anonymous\";q=4;w=60");
    assert!(first.header("ratelimit").starts_with("\"anonymous\";r=3;"), "{:?}", first.headers);
    for _ in 0..3 {
        ask(&http, from, Method::GET, me, &garbage, Value::Null).await.with(401);
    }
    // A wrong token and none at all, on a route with a gate and on one without: all are counted together.
    for (path, headers) in [(me, &garbage[..]), (me, &[]), (schema, &[])] {
        let answer = ask(&http, from, Method::GET, path, headers, Value::Null).await;
        assert!((1..=60).contains(&answer.header("retry-after").parse().unwrap()));
        assert_eq!(answer.with(429)["code"], "rate_limited", "{path}");
    }
    let good = format!("Bearer {}", http.realm.token("viewer"));
    let known = ask(&http, from, Method::GET, me, &[("authorization", &good)], Value::Null).await;
    assert_eq!(known.status, 200, "whoever is known is not held up by others at the same address");
    assert_eq!(ask(&http, "192.0.2.8:4000", Method::GET, schema, &[], Value::Null).await.status, 200);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_proves_itself_is_not_a_strangers_once_it_was_accepted() {
    let story = Story::new().await;
    let http = Http::with(&story, |state| state.limiting_strangers(2)).await;
    let made = service_accounts::make(&http, json!({ "name": "pipeline" })).await;
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let from = "192.0.2.7:4000";
    for _ in 0..5 {
        let minted = ask(&http, from, Method::POST, TOKEN, &[], proof.clone()).await;
        assert_eq!(minted.header("ratelimit-policy"), "", "what does not count tells of no limit");
        minted.with(200);
    }
    let unproven = json!({ "service_account_id": made["id"], "key_id": "k", "assertion": "x" });
    for expected in [401, 401, 429] {
        ask(&http, from, Method::POST, TOKEN, &[], unproven.clone()).await.with(expected);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_heard_where_everybody_else_at_their_address_has_asked_too_often() {
    let story = Story::new().await;
    let http = Http::with(&story, |state| state.limiting_strangers(2)).await;
    let made = http.post(&admin("/nodes"), json!({ "name": "gpu-1" })).await.with(201);
    let from = "192.0.2.7:4000";
    let garbage = [("authorization", "Bearer garbage")];
    for expected in [401, 401, 429] {
        ask(&http, from, Method::GET, "/api/v1/me", &garbage, Value::Null).await.with(expected);
    }

    let key = Key::generate();
    let enrolment = node::enrolment(made["enrolment_token"].as_str().unwrap(), &key);
    let enrolled =
        ask(&http, from, Method::POST, "/internal/v1/nodes/enroll", &[], enrolment).await.with(200);
    let id: Uuid = enrolled["node_id"].as_str().unwrap().parse().unwrap();
    let token = format!("/internal/v1/nodes/{id}/token");
    for _ in 0..4 {
        let assertion = assert_identity(&key, id, PLATFORM, http.realm.now());
        let proof = json!({ "key_id": key.id(), "assertion": assertion.expose() });
        ask(&http, from, Method::POST, &token, &[], proof).await.with(200);
    }
    // A token that has ended is told from a limit: by the one a node asks for another, and not by the other.
    let beat = format!("/internal/v1/nodes/{id}/heartbeat");
    ask(&http, from, Method::POST, &beat, &garbage, json!({})).await.with(401);
    let unproven = json!({ "key_id": key.id(), "assertion": "x" });
    for expected in [401, 429] {
        ask(&http, from, Method::POST, &token, &[], unproven.clone()).await.with(expected);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_proxy_of_ours_says_of_an_address_is_believed_and_nothing_else() {
    let story = Story::new().await;
    let http = Http::with(&story, |state| state.limiting_strangers(1).behind_proxies(1)).await;
    let asked = async |told: &str| {
        let headers = [("x-forwarded-for", told)];
        let path = "/api/v1/apps/manifest-schema";
        ask(&http, "127.0.0.1:9", Method::GET, path, &headers, Value::Null).await.status.as_u16()
    };
    assert_eq!(asked("192.0.2.1").await, 200);
    assert_eq!(asked("192.0.2.2").await, 200);
    assert_eq!(
        asked("10.9.8.7, 192.0.2.1").await,
        429,
        "what the caller wrote before it is its own invention"
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn denials_of_nobody_are_told_once_a_minute_and_those_of_somebody_always() {
    const TRIES: usize = 20;
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let from = "192.0.2.7:4000";
    let made = service_accounts::make(&http, json!({ "name": "pipeline" })).await;
    let token = service_accounts::bearer(&http, &made).await;
    let path = project(&format!("/service-accounts/{}/disable", made["id"].as_str().unwrap()));
    http.post(&path, json!({})).await.with(200);

    let disabled = format!("Bearer {token}");
    for n in 0..TRIES {
        let wrong = format!("Bearer garbage-{n}");
        ask(&http, from, Method::GET, "/api/v1/me", &[("authorization", &wrong)], Value::Null)
            .await
            .with(401);
        let nobody = json!({ "service_account_id": Uuid::now_v7(), "key_id": "k", "assertion": "x" });
        ask(&http, from, Method::POST, TOKEN, &[], nobody).await.with(401);
        let unproven = json!({ "service_account_id": made["id"], "key_id": "k", "assertion": "x" });
        ask(&http, from, Method::POST, TOKEN, &[], unproven).await.with(401);
        let workflows = project("/workflows");
        ask(&http, from, Method::GET, &workflows, &[("authorization", &disabled)], Value::Null)
            .await
            .with(401);
    }
    let nobodys = async {
        loop {
            let told = denied(&http, "get_me").await;
            if !told.is_empty() {
                return told;
            }
        }
    };
    // Those are told behind the request's back.
    let nobodys = tokio::time::timeout(Duration::from_secs(30), nobodys).await.expect("a word of it");
    assert_eq!(nobodys.len(), 1, "{nobodys:#?}");
    assert_eq!((&nobodys[0]["target"], &nobodys[0]["ip"]), (&json!("/api/v1/me"), &json!("192.0.2.7")));
    let known = |entry: &&Value| entry["actor"]["id"] == made["id"];
    let minted = denied(&http, "issue_service_account_token").await;
    assert_eq!((minted.len(), minted.iter().filter(known).count()), (TRIES + 1, TRIES));
    let refused = denied(&http, "list_workflows").await;
    assert_eq!(refused.iter().filter(known).count(), TRIES, "{refused:#?}");

    // Every kind of proof that fails is told of, and a path that could hold one is not.
    for (method, path, action) in [
        (Method::POST, "/internal/v1/nodes/enroll".to_owned(), "enroll_node"),
        (Method::POST, format!("/internal/v1/nodes/{FAR_AWAY}/token"), "issue_node_token"),
        (Method::GET, "/registry/token".to_owned(), "issue_registry_token"),
        (Method::POST, "/internal/v1/registry/events".to_owned(), "notify_of_registry_events"),
        (Method::POST, "/v1/sys/wrapping/unwrap".to_owned(), "unwrap_secret"),
    ] {
        for _ in 0..3 {
            let body = match action {
                "enroll_node" => node::enrolment("nothing", &Key::generate()),
                "issue_node_token" => json!({ "key_id": "k", "assertion": "x" }),
                _ => json!({}),
            };
            let shown = [("x-vault-token", "hvs.nothing")];
            let answer = ask(&http, from, method.clone(), &path, &shown, body).await;
            assert!(
                [400, 401].contains(&answer.status.as_u16()),
                "{path}: {} {}",
                answer.status,
                answer.body
            );
        }
        assert_eq!(denied(&http, action).await.len(), 1, "{action}");
    }
    story.end().await;
}
