//! What a project asked for stays what it asked for: the defaults beside it are those of whichever version serves.

use agent::Simulated;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

/// A version whose config may have these fields, as text with these defaults, and no others.
async fn taking(platform: &Platform, defaults: &[(&str, &str)]) -> String {
    let field = |(name, default): &(&str, &str)| {
        ((*name).to_owned(), json!({ "type": "string", "minLength": 1, "default": default }))
    };
    let fields: Map<String, Value> = defaults.iter().map(field).collect();
    let schema = json!({ "type": "object", "additionalProperties": false, "properties": fields });
    let number =
        platform.draft(json!({ "runtime_profile": profile(PORT, 30), "config_schema": schema })).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

async fn on_a_node() -> (Platform, RunningAgent) {
    let platform = Platform::new().await;
    let (agent, _) = platform.node("gpu-1", &Simulated::new(), 4).await;
    (platform, agent)
}

async fn deployed(platform: &Platform, number: &str, config: Value) -> Uuid {
    let body = json!({ "app_slug": "hello", "version": number, "display_name": "hello", "config": config });
    let made = platform.create(body).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    id_of(&made)
}

/// The config that the instance has after the change.
async fn after(platform: &Platform, id: Uuid, verb: &str, number: &str) -> Value {
    let changed = platform.act(id, verb, json!({ "target_version": number })).await;
    assert_eq!((&changed["workflow"]["status"], &changed["version"]), (&json!("succeeded"), &json!(number)));
    changed["config"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_a_version_drops_stands_in_the_way_only_of_those_who_asked_for_it() {
    let (platform, agent) = on_a_node().await;
    let old = taking(&platform, &[("greeting", "Hello"), ("colour", "red")]).await;
    let new = taking(&platform, &[("greeting", "Hello")]).await;
    let id = deployed(&platform, &old, json!({})).await;
    let painted = deployed(&platform, &old, json!({ "colour": "blue" })).await;
    assert_eq!(after(&platform, id, "upgrade", &new).await, json!({ "greeting": "Hello" }));
    let path = project(&format!("/app-instances/{painted}/upgrade"));
    let refused = platform.http.post(&path, json!({ "target_version": new })).await.with(400);
    let problems = refused["details"]["errors"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{refused:#}");
    assert_eq!(problems[0]["pointer"], "/target_version");
    assert!(problems[0]["message"].as_str().unwrap().contains("config/colour"), "{refused:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_versions_add_is_no_obstacle_to_going_back_past_them() {
    let (platform, agent) = on_a_node().await;
    let first = taking(&platform, &[("greeting", "Hello")]).await;
    let second = taking(&platform, &[("greeting", "Hello"), ("colour", "red")]).await;
    let third = taking(&platform, &[("greeting", "Hello"), ("colour", "red"), ("size", "large")]).await;
    let id = deployed(&platform, &first, json!({ "greeting": "Welcome" })).await;
    let coloured = json!({ "greeting": "Welcome", "colour": "red" });
    let sized = json!({ "greeting": "Welcome", "colour": "red", "size": "large" });
    assert_eq!(after(&platform, id, "upgrade", &second).await, coloured);
    assert_eq!(after(&platform, id, "upgrade", &third).await, sized);
    assert_eq!(after(&platform, id, "rollback", &first).await, json!({ "greeting": "Welcome" }));
    assert_eq!(platform.act(id, "rollback", json!({})).await["config"], sized);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_that_a_version_changes_changes_with_it_and_what_was_asked_for_stays() {
    let (platform, agent) = on_a_node().await;
    let old = taking(&platform, &[("greeting", "Hello"), ("colour", "red")]).await;
    let new = taking(&platform, &[("greeting", "Welcome"), ("colour", "blue")]).await;
    let id = deployed(&platform, &old, json!({ "colour": "red" })).await;
    assert_eq!(platform.instance(id).await["config"], json!({ "greeting": "Hello", "colour": "red" }));
    let path = project(&format!("/app-instances/{id}/plan"));
    let planned = json!({ "action": "upgrade", "target_version": new });
    let planned = platform.http.post(&path, planned).await.with(200);
    let changed = after(&platform, id, "upgrade", &new).await;
    assert_eq!(changed, json!({ "greeting": "Welcome", "colour": "red" }));
    assert_eq!(planned["effective"]["config"], changed, "as it was planned");
    agent.end().await;
    platform.end().await;
}

/// Nobody wrote down what was asked for: what it has counts as that, and what later versions add does not.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_an_older_release_goes_on_with_what_it_has() {
    let (platform, agent) = on_a_node().await;
    let first = taking(&platform, &[("greeting", "Hello")]).await;
    let second = taking(&platform, &[("greeting", "Welcome"), ("colour", "red")]).await;
    let third = taking(&platform, &[("greeting", "Welcome")]).await;
    let id = deployed(&platform, &first, json!({})).await;
    sqlx::query("update app_instances set asked_config = null where id = $1")
        .bind(id)
        .execute(&platform.story.pool)
        .await
        .unwrap();
    let coloured = json!({ "greeting": "Hello", "colour": "red" });
    assert_eq!(after(&platform, id, "upgrade", &second).await, coloured);
    assert_eq!(after(&platform, id, "upgrade", &third).await, json!({ "greeting": "Hello" }));
    agent.end().await;
    platform.end().await;
}
