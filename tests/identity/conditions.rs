//! `If-Match` on every route that changes one thing, driven from the API document: a tag that is not the thing's stops the
//! change, the tag that a read tells lets it happen.

use axum::http::Method;
use serde_json::Value;

use super::idempotency::fixture::{Ask, Fixtures};
use crate::http::{Answer, Http};
use crate::support::story::Story;

/// They act on one thing and change nothing of it, so there is nothing to compare.
const UNCONDITIONAL: [&str; 5] = [
    "admin_create_credit",
    "admin_run_schedule",
    "project_replay_webhook",
    "create_platform_pull_intent",
    "project_report_app_instance_event",
];
/// What is set by its name has no read of its own: who set it knows its tag.
const UNREAD: [&str; 2] = ["admin_set_policy", "project_set_entitlement"];

/// Every operation on one thing that can be guarded.
fn guarded() -> Vec<String> {
    let document = serde_json::to_value(api::document()).unwrap();
    let mut names = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let has = |name: &str| {
                let params = operation["parameters"].as_array().into_iter().flatten();
                params.into_iter().any(|param| param["name"] == name)
            };
            let name = operation["operationId"].as_str().unwrap().to_owned();
            let within = path.trim_start_matches("/api/v1/projects/{project_id}");
            let of_one = within.trim_start_matches("/api/v1/organizations/{org_id}").contains('{');
            let changes = has("X-Idempotency-Key");
            if of_one && changes && !UNCONDITIONAL.contains(&name.as_str()) {
                assert!(has("If-Match"), "{name} cannot be guarded");
                assert!(operation["responses"]["412"].is_object(), "{name} does not say so");
            }
            if has("If-Match") {
                names.push(name);
            }
        }
    }
    names
}

async fn send(http: &Http, ask: &Ask, tag: &str) -> Answer {
    let body = Some(ask.body.to_string());
    http.send_text(ask.method.clone(), &ask.path, &[("if-match", tag)], body).await
}

/// The tag of what the request acts on: it is at the path itself, or what precedes the verb.
async fn tag_of(http: &Http, ask: &Ask) -> String {
    let before_verb = ask.path.rsplit_once('/').map_or("", |(thing, _)| thing);
    // Versions are read by everybody.
    let in_the_catalog = before_verb.replace("/admin/", "/");
    for path in [&ask.path, before_verb, &in_the_catalog] {
        let answer = http.send(Method::GET, path, &[], None).await;
        if answer.status == 200 && !answer.header("etag").is_empty() {
            return answer.header("etag").to_owned();
        }
    }
    panic!("nobody can read the tag of {}", ask.path);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_tag_stops_every_change_of_one_thing_and_a_fresh_one_lets_it_happen() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let fixtures = Fixtures::new(&story, &http).await;
    for name in guarded() {
        let ask = fixtures.ask(&name).await;
        let refused = send(&http, &ask, "\"stale\"").await.with(412);
        assert_eq!(refused["code"], "precondition_failed", "{name}");
        if UNREAD.contains(&name.as_str()) {
            continue;
        }
        let tag = tag_of(&http, &ask).await;
        let done = send(&http, &ask, &tag).await;
        assert!(done.status.is_success(), "{name}: {} {:#}", done.status, done.body);
    }
    fixtures.end().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_is_found_where_its_answer_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let fixtures = Fixtures::new(&story, &http).await;
    for name in [
        "admin_create_organization",
        "admin_create_project",
        "organization_add_member",
        "organization_create_role",
        "project_add_member",
        "project_create_service_account",
        "project_create_federated_trust",
        "project_create_access_credential",
        "project_create_signing_key",
        "project_create_webhook",
        "admin_create_allocation",
        "admin_create_node",
    ] {
        let Ask { method, path, body } = fixtures.ask(name).await;
        let made = http.send(method, &path, &[], Some(body)).await;
        let (location, tag) = (made.header("location").to_owned(), made.header("etag").to_owned());
        let made = made.with(201);
        let found = http.get(&location).await;
        assert_eq!(found.status, 200, "{name}: {location} {:#}", found.body);
        if !tag.is_empty() {
            assert_eq!(found.header("etag"), tag, "{name}");
        }
        let id = |value: &Value| value["id"].clone();
        assert_eq!(id(&found.body), id(&made), "{name}");
    }
    fixtures.end().await;
    story.end().await;
}
