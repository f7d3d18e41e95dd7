//! Idempotency on every route that changes something, driven from the API document: the same key twice is one effect
//! and one answer; another body is refused; however many ask at once, it happens once.

pub mod fixture;

use axum::http::Method;
use futures::future::join_all;
use serde_json::{Value, json};

use self::fixture::{Ask, Fixtures};
use crate::http::{Answer, Http, project};
use crate::support::story::Story;

/// Every operation that changes something behind a gate: its id in the document and its action in the audit log.
fn mutations() -> Vec<String> {
    let document = serde_json::to_value(api::document()).unwrap();
    let mut names = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // What nodes say has numbers and keys of its own, and a heartbeat may be said twice.
            let keyless = ["public", "node"].iter().any(|who| operation["x-permission"] == *who)
                || operation["x-said-again"] == true;
            let has_key = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|p| p["name"] == "X-Idempotency-Key");
            let question = operation["x-changes-nothing"] == true;
            assert_eq!(has_key, method != "get" && !keyless && !question, "{method} {path}");
            // What an instance says takes an instance to say it: its own story does.
            if has_key && operation["x-permission"] != "instance" {
                names.push(operation["operationId"].as_str().unwrap().to_owned());
            }
        }
    }
    names
}

async fn send(http: &Http, ask: &Ask, key: &str, body: String) -> Answer {
    http.send_text(ask.method.clone(), &ask.path, &[("x-idempotency-key", key)], Some(body)).await
}

/// How often something was done, as the audit log tells it.
async fn times_done(story: &Story, correlation: &str) -> i64 {
    sqlx::query_scalar("select count(*) from audit where correlation_id like $1 and result = 'succeeded'")
        .bind(format!("{correlation}%"))
        .fetch_one(&story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_twice_is_one_effect_and_one_answer_on_every_route() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let fixtures = Fixtures::new(&story, &http).await;
    for name in mutations() {
        let ask = fixtures.ask(&name).await;
        let before = times_done(&story, "").await;
        let body = ask.body.to_string();
        let first = send(&http, &ask, "k", body.clone()).await;
        assert!(first.status.is_success(), "{name}: {} {:#}", first.status, first.body);
        assert_eq!(first.header("idempotent-replayed"), "", "{name}");
        let again = send(&http, &ask, "k", body.clone()).await;
        assert_eq!(again.header("idempotent-replayed"), "true", "{name}");
        assert_eq!((again.status, &again.body), (first.status, &replayed(first.body)), "{name}");
        for header in ["location", "etag", "content-type"] {
            assert_eq!(again.headers.get(header), first.headers.get(header), "{name}: {header}");
        }
        let other = send(&http, &ask, "k", format!("{body} ")).await;
        assert_eq!(other.with(422)["code"], "idempotency_key_reused", "{name}");
        assert_eq!(times_done(&story, "").await, before + 1, "{name} happened once");
    }
    fixtures.end().await;
    story.end().await;
}

/// What the same answer looks like the second time.
fn replayed(mut first: Value) -> Value {
    for place in ["/private_key_pem", "/enrolment_token", "/credential/token", "/secret"] {
        if let Some(secret) = first.pointer_mut(place) {
            *secret = Value::Null;
            first["secret_already_delivered"] = json!(true);
        }
    }
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_are_one_effect_on_every_route() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let fixtures = Fixtures::new(&story, &http).await;
    for name in mutations() {
        let ask = fixtures.ask(&name).await;
        let before = times_done(&story, "").await;
        let answers = join_all((0..50).map(|_| send(&http, &ask, "k", ask.body.to_string()))).await;
        let firsts =
            answers.iter().filter(|a| a.status.is_success() && a.header("idempotent-replayed").is_empty());
        assert_eq!(firsts.count(), 1, "{name}: one is first");
        for answer in &answers {
            let waits = answer.status == 409 && answer.body["code"] == "idempotency_in_progress";
            assert!(answer.status.is_success() || waits, "{name}: {} {:#}", answer.status, answer.body);
            assert!(!waits || answer.header("retry-after") == "1", "{name}");
        }
        assert_eq!(times_done(&story, "").await, before + 1, "{name} happened once");
    }
    fixtures.end().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_leaves_its_key_free() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let keyed = [("idempotency-key", "k")];
    let path = project("/service-accounts");
    let send = |body: Value| {
        let (http, path) = (http.clone(), path.clone());
        async move { http.send(Method::POST, &path, &keyed, Some(body)).await }
    };
    assert_eq!(send(json!({ "name": "one", "permissions": ["nodes.manage"] })).await.status, 400);
    assert_eq!(send(json!({ "name": "one" })).await.status, 201);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_principal_one_method_and_one_path() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let keyed = [("x-idempotency-key", "k"), ("idempotency-key", "k")];
    let path = project("/service-accounts");
    for (who, name) in [("admin", "one"), ("project-admin", "two")] {
        let made = http.acting(who).send(Method::POST, &path, &keyed, Some(json!({ "name": name }))).await;
        assert_eq!(made.with(201)["name"], name);
    }
    let elsewhere = "/api/v1/admin/organizations";
    let made = http.send(Method::POST, elsewhere, &keyed, Some(json!({ "slug": "acme" }))).await;
    assert_eq!(made.with(201)["slug"], "acme");
    let torn = [("x-idempotency-key", "k"), ("idempotency-key", "other")];
    let refused = http.send(Method::POST, elsewhere, &torn, Some(json!({ "slug": "acme" }))).await;
    assert_eq!(refused.with(400)["code"], "invalid_request");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_for_a_day() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let keyed = [("x-idempotency-key", "k")];
    let send = |name: &'static str| {
        let http = http.clone();
        async move {
            http.send(Method::POST, &project("/service-accounts"), &keyed, Some(json!({ "name": name })))
                .await
        }
    };
    assert_eq!(send("one").await.status, 201);
    story.advance(std::time::Duration::from_secs(23 * 3600)).await;
    assert_eq!(send("one").await.header("idempotent-replayed"), "true");
    story.advance(std::time::Duration::from_secs(2 * 3600)).await;
    assert_eq!(send("two").await.with(201)["name"], "two", "after a day the key is as new");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_is_answered_again_with_what_was_accepted() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let fixtures = Fixtures::new(&story, &http).await;
    let ask = fixtures.ask("project_cancel_workflow").await;
    let keyed = [("x-idempotency-key", "k")];
    let path = format!("{}?wait=30s", ask.path);
    http.send(Method::POST, &path, &keyed, Some(ask.body.clone())).await.with(200);
    let again = http.send(Method::POST, &ask.path, &keyed, Some(ask.body.clone())).await;
    assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (202, "true"));
    fixtures.end().await;
    story.end().await;
}
