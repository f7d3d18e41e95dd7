//! A project's machines: what they can prove, what they may do, and how quickly it ends.

use axum::http::Method;
use chrono::TimeDelta;
use clients::assertion;
use clients::signing::SigningKey;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Answer, Http, project};
use crate::support::realm::PLATFORM;
use crate::support::story::Story;

const TOKEN: &str = "/api/v1/auth/service-account/token";

pub async fn make(http: &Http, body: Value) -> Value {
    http.acting("project-admin").post(&project("/service-accounts"), body).await.with(201)
}

/// Shows the private key itself.
pub async fn token_by_key(http: &Http, made: &Value) -> Answer {
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    http.bearing("").post(TOKEN, proof).await
}

pub async fn bearer(http: &Http, made: &Value) -> String {
    token_by_key(http, made).await.with(200)["access_token"].as_str().unwrap().to_owned()
}

fn signed(http: &Http, made: &Value, audience: &str) -> String {
    let key = SigningKey::from_pem(made["private_key_pem"].as_str().unwrap()).unwrap();
    assertion::sign(&key, made["id"].as_str().unwrap(), audience, http.realm.now()).unwrap()
}

async fn token_by_assertion(http: &Http, made: &Value, assertion: &str) -> Answer {
    let proof = json!({ "service_account_id": made["id"], "key_id": made["key_id"], "assertion": assertion });
    http.bearing("").post(TOKEN, proof).await
}

fn path(made: &Value, act: &str) -> String {
    project(&format!("/service-accounts/{}{act}", made["id"].as_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstarts_commands_lead_to_a_token_that_may_do_what_was_allowed() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let body =
        json!({ "name": "app-operator", "slug": "app-operator", "description": "Operator for automation" });
    let made = make(&http, body).await;
    assert!(made["private_key_pem"].as_str().unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
    // As a shell sends it: the key file's line breaks stand in the string as they are.
    let raw = format!(
        "{{\n\"service_account_id\": {},\n\"key_id\": {},\n\"private_key_pem\": \"{}\"\n}}",
        made["id"],
        made["key_id"],
        made["private_key_pem"].as_str().unwrap()
    );
    let answer = http.bearing("").send_text(Method::POST, TOKEN, &[], Some(raw)).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let token = answer.with(200);
    assert_eq!((&token["token_type"], &token["expires_in"]), (&json!("Bearer"), &json!(900)));
    assert!(token["scope"].as_str().unwrap().split(' ').any(|key| key == "apps.instance.create"));
    let machine = http.bearing(token["access_token"].as_str().unwrap());
    assert_eq!(machine.get(&project("/workflows")).await.status, 200);
    assert_eq!(machine.get(&project("/audit")).await.with(403)["code"], "insufficient_permissions");
    assert_eq!(machine.get("/api/v1/me").await.with(200)["actor_type"], "service_account");
    let shown = http.get(&path(&made, "")).await.with(200);
    assert!(shown["last_used_at"].is_string(), "{shown}");
    assert_eq!(shown.get("private_key_pem"), None);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assertion_is_good_once_for_us_and_for_a_minute() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let (made, other) =
        (make(&http, json!({ "name": "one" })).await, make(&http, json!({ "name": "two" })).await);
    let good = signed(&http, &made, PLATFORM);
    let at_once = futures::future::join_all((0..8).map(|_| token_by_assertion(&http, &made, &good))).await;
    assert_eq!(
        at_once.iter().filter(|answer| answer.status == 200).count(),
        1,
        "used once, however hard it is tried"
    );
    assert!(at_once.iter().all(|answer| answer.status == 200 || answer.body["code"] == "token_invalid"));

    let elsewhere = signed(&http, &made, "https://another.test");
    assert_eq!(token_by_assertion(&http, &made, &elsewhere).await.with(401)["code"], "token_scope_invalid");
    let of_other = signed(&http, &other, PLATFORM);
    assert_eq!(token_by_assertion(&http, &made, &of_other).await.with(401)["code"], "token_invalid");
    let late = signed(&http, &made, PLATFORM);
    http.realm.clock.advance(TimeDelta::seconds(91));
    assert_eq!(token_by_assertion(&http, &made, &late).await.with(401)["code"], "token_expired");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_account_a_wrong_key_and_a_wrong_proof_look_alike() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = make(&http, json!({ "name": "one" })).await;
    let stranger = SigningKey::generate().unwrap().private_key_pem().unwrap().expose().clone();
    let mut told = Vec::new();
    for (name, value) in [
        ("service_account_id", json!(Uuid::now_v7())),
        ("key_id", json!("unknown")),
        ("private_key_pem", json!(stranger)),
        ("private_key_pem", json!("not a key")),
    ] {
        let mut wrong = made.clone();
        let field = if name == "service_account_id" { "id" } else { name };
        wrong[field] = value;
        let refused = token_by_key(&http, &wrong).await.with(401);
        told.push((refused["code"].clone(), refused["message"].clone(), refused["details"].clone()));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:#?}");
    let page =
        http.get("/api/v1/admin/audit?action=issue_service_account_token&result=denied").await.with(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 4, "every refusal is in the audit log");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_and_deleting_hold_for_tokens_that_were_given_out_before() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = make(&http, json!({ "name": "one" })).await;
    let machine = http.bearing(&bearer(&http, &made).await);
    let works = project("/workflows");
    assert_eq!(machine.get(&works).await.status, 200);

    http.post(&path(&made, "/disable"), json!({ "reason": "leaked" })).await.with(200);
    assert_eq!(machine.get(&works).await.with(401)["code"], "token_invalid");
    assert_eq!(token_by_key(&http, &made).await.with(401)["code"], "token_invalid");
    http.post(&path(&made, "/enable"), json!({})).await.with(200);
    assert_eq!(machine.get(&works).await.status, 200);

    assert_eq!(http.delete(&path(&made, "")).await.status, 204);
    assert_eq!(machine.get(&works).await.with(401)["code"], "token_invalid");
    assert_eq!(token_by_key(&http, &made).await.with(401)["code"], "token_invalid");
    assert_eq!(http.get(&path(&made, "")).await.with(404)["code"], "service_account_not_found");
    make(&http, json!({ "name": "one" })).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotating_keeps_one_old_key_and_a_leaked_one_can_be_ended_at_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let first = make(&http, json!({ "name": "one" })).await;
    let rotate = |body: Value| {
        let (http, path) = (http.clone(), path(&first, "/rotate-key"));
        async move { http.post(&path, body).await.with(200) }
    };
    let second = rotate(json!({})).await;
    for key in [&first, &second] {
        assert_eq!(token_by_key(&http, key).await.status, 200, "two live during a rotation");
    }
    let third = rotate(json!({})).await;
    assert_eq!(token_by_key(&http, &first).await.with(401)["code"], "token_invalid");
    assert_eq!(third["keys"].as_array().unwrap().len(), 2);
    let fourth = rotate(json!({ "revoke_others": true })).await;
    for key in [&second, &third] {
        assert_eq!(token_by_key(&http, key).await.with(401)["code"], "token_invalid");
    }
    assert_eq!(token_by_key(&http, &fourth).await.status, 200);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_makes_a_machine_that_may_do_more_than_they() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let admin = http.acting("project-admin");
    for (keys, status, code) in [
        (json!(["nodes.manage"]), 400, "validation_error"),
        (json!(["no.such.key"]), 400, "validation_error"),
    ] {
        let body = json!({ "name": "one", "permissions": keys });
        assert_eq!(admin.post(&project("/service-accounts"), body).await.with(status)["code"], code);
    }
    // A machine that may make machines, and little else.
    let keys = json!(["iam.service_account.manage", "iam.service_account.read", "workflows.read"]);
    let keeper = make(&http, json!({ "name": "keeper", "permissions": keys })).await;
    let keeper = http.bearing(&bearer(&http, &keeper).await);
    let greedy = json!({ "name": "greedy", "permissions": ["audit.read", "workflows.read"] });
    let refused = keeper.post(&project("/service-accounts"), greedy).await.with(403);
    assert_eq!(refused["details"]["permissions"], json!(["audit.read"]));
    let made = keeper.post(&project("/service-accounts"), json!({ "name": "modest" })).await.with(201);
    assert_eq!(made["permissions"], json!(["workflows.read"]), "the default is cut to what the maker holds");
    // Nor can it take over a mightier one by giving it a new key.
    let mighty = make(&http, json!({ "name": "mighty" })).await;
    let refused = keeper.post(&path(&mighty, "/rotate-key"), json!({})).await.with(403);
    assert_eq!(refused["code"], "insufficient_permissions");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_guards_a_machine_against_changes_one_has_not_seen() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = make(&http, json!({ "name": "one" })).await;
    let seen = http.get(&path(&made, "")).await.header("etag").to_owned();
    let act = |act: &'static str, tag: String| {
        let (http, path) = (http.clone(), path(&made, act));
        async move { http.send(Method::POST, &path, &[("if-match", &tag)], Some(json!({}))).await }
    };
    let disabled = act("/disable", seen.clone()).await;
    let now = disabled.header("etag").to_owned();
    disabled.with(200);
    assert_eq!(
        http.get(&path(&made, "")).await.header("etag"),
        now,
        "the answer to a change has the tag of the next read"
    );
    assert_eq!(act("/enable", seen).await.with(412)["code"], "precondition_failed");
    act("/enable", now).await.with(200);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_live_as_long_as_the_most_specific_policy_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = make(&http, json!({ "name": "one" })).await;
    let set = |scope: String, value: u32| {
        let http = http.clone();
        let path = format!("/api/v1/admin/policies/{scope}/auth.service_account_token_ttl_seconds");
        async move { http.put(&path, json!({ "value": value })).await.with(200) }
    };
    set("global/global".to_owned(), 300).await;
    assert_eq!(token_by_key(&http, &made).await.with(200)["expires_in"], 300);
    set(format!("project/{}", made["project_id"].as_str().unwrap()), 120).await;
    let token = token_by_key(&http, &made).await.with(200);
    assert_eq!(token["expires_in"], 120);
    let machine = http.bearing(token["access_token"].as_str().unwrap());
    assert_eq!(machine.get("/api/v1/me").await.status, 200);
    http.realm.clock.advance(TimeDelta::seconds(151));
    assert_eq!(machine.get("/api/v1/me").await.with(401)["code"], "token_expired");
    story.end().await;
}
