//! Policies: every key is known, bounded and told; what is set holds on its layer.

use domain::PolicyKey;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Http, admin};
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;

async fn of(http: &Http, key: &str) -> Value {
    let page = http.get(&admin("/policies")).await.with(200);
    page["items"].as_array().unwrap().iter().find(|policy| policy["key"] == key).cloned().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_is_listed_with_its_default_and_bounds() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let page = http.get(&admin("/policies")).await.with(200);
    assert_eq!(page["items"].as_array().unwrap().len(), PolicyKey::all().count());
    let ttl = of(&http, "auth.service_account_token_ttl_seconds").await;
    assert_eq!((&ttl["default"], &ttl["set"]), (&json!(900), &json!([])));
    assert_eq!(ttl["bounds"], "a whole number from 60 to 3600");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_set_changed_and_told_with_who_did_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let path = admin(&format!("/policies/project/{EXAMPLE}/canary.min_samples"));
    let first = http.put(&path, json!({ "value": 30 })).await;
    assert!(first.header("etag").starts_with('"'));
    assert_eq!(first.with(200)["value"], 30);
    http.put(&path, json!({ "value": 40, "reason": "too noisy" })).await.with(200);
    let set = of(&http, "canary.min_samples").await["set"].clone();
    assert_eq!(
        (set.as_array().unwrap().len(), &set[0]["value"], &set[0]["scope"]),
        (1, &json!(40), &json!("project"))
    );
    let told = http.get(&admin("/audit?action=set_policy")).await.with(200)["items"][0].clone();
    assert_eq!((&told["before"]["value"], &told["after"]["value"]), (&json!(30), &json!(40)));
    assert_eq!(told["reason"], "too noisy");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_out_of_bounds_are_refused_and_the_attempt_is_in_the_audit_log() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let refused =
        http.put(&admin("/policies/global/global/canary.min_samples"), json!({ "value": 0 })).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/value");
    let told = http.get(&admin("/audit?action=set_policy&result=denied")).await.with(200)["items"].clone();
    assert_eq!((told.as_array().unwrap().len(), &told[0]["code"]), (1, &json!("validation_error")));
    assert_eq!(of(&http, "canary.min_samples").await["set"], json!([]));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_layers_and_subjects_are_not_found() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let nobody = Uuid::now_v7();
    for path in [
        "global/global/no.such.key".to_owned(),
        "galaxy/global/canary.min_samples".to_owned(),
        "global/somewhere/canary.min_samples".to_owned(),
        format!("project/{nobody}/canary.min_samples"),
        format!("org/{nobody}/canary.min_samples"),
        format!("user/{nobody}/canary.min_samples"),
    ] {
        let refused = http.put(&admin(&format!("/policies/{path}")), json!({ "value": 30 })).await.with(404);
        assert_eq!(refused["code"], "policy_not_found", "{path}");
    }
    story.end().await;
}
