//! Retiring waits: for the grace period, by the database's clock, and for the last instance to let go.

use std::time::Duration;

use engine::RunState;
use futures::future::join;
use serde_json::json;
use store::app_versions;
use uuid::Uuid;
use workflows::version::{Retirement, When};

use super::{act, admin_catalog, catalog, decommissioned, instance, publish, register, told};
use crate::lifecycle::somebody;
use crate::support::control_plane::Platform;
use crate::support::story::start;

const WEEK: Duration = Duration::from_secs(7 * 86_400);

async fn retire(platform: &Platform, version: &str) -> Uuid {
    let path = admin_catalog(&format!("/notes/versions/{version}/retire"));
    let answer = platform.post(&path, json!({ "reason": "old" })).await.with(202);
    answer["workflow"]["id"].as_str().unwrap().parse().unwrap()
}

async fn status(platform: &Platform, version: &str) -> String {
    let shown = platform.get(&catalog(&format!("/notes/versions/{version}"))).await.with(200);
    shown["status"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_ends_when_its_grace_is_over_and_the_last_instance_is_gone() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let user = instance(&platform, "notes", "1.0.0").await;
    let run = retire(&platform, "1.0.0").await;
    platform.story.until(run, &[RunState::Waiting]).await;
    assert_eq!(status(&platform, "1.0.0").await, "deprecated", "nothing new from the start");
    let shown = platform.get(&format!("/api/v1/admin/workflows/{run}")).await.with(200);
    assert_eq!(shown["stuck_cause"]["code"], "waiting_timer");
    assert!(
        shown["allowed_actions"].as_array().unwrap().contains(&json!("cancel")),
        "nothing is decided yet"
    );

    platform.story.advance(WEEK).await;
    platform.story.until_step(run, "0", "waiting").await;
    let shown = platform.get(&format!("/api/v1/admin/workflows/{run}")).await.with(200);
    let look =
        shown["steps"].as_array().unwrap().iter().find(|step| step["name"] == "list_references").unwrap();
    assert_eq!(look["output"][0]["app_instance_id"], json!(user), "whoever holds it up is listed");
    assert_eq!(status(&platform, "1.0.0").await, "deprecated");
    assert!(!shown["allowed_actions"].as_array().unwrap().contains(&json!("cancel")), "it is past its pivot");

    decommissioned(&platform, user).await;
    platform.story.advance(Duration::from_secs(3600)).await;
    assert_eq!(platform.story.ends(run).await, RunState::Succeeded);
    assert_eq!(status(&platform, "1.0.0").await, "retired");
    let version = platform.get(&catalog("/notes/versions/1.0.0")).await.with(200);
    let events = told(&platform, &version).await;
    assert_eq!(events[events.len() - 2..], ["apps.version.deprecated", "apps.version.retired"]);
    assert_eq!(version["allowed_actions"], json!([]));
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn now_means_now_or_not_at_all_and_says_who_is_in_the_way() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let user = instance(&platform, "notes", "1.0.0").await;
    let refused = act(&platform, "notes", "1.0.0", "retire", json!({ "when": "now" })).await.with(409);
    assert_eq!(refused["code"], "version_in_use");
    assert_eq!(refused["details"]["references"][0]["app_instance_id"], json!(user));
    assert_eq!(status(&platform, "1.0.0").await, "active", "nothing happened");
    decommissioned(&platform, user).await;
    let done = act(&platform, "notes", "1.0.0", "retire", json!({ "when": "now" })).await.with(200);
    assert_eq!((&done["status"], &done["workflow"]["status"]), (&json!("retired"), &json!("succeeded")));
    platform.end().await;
}

/// What the request saw may be over when its run begins, so the run looks for itself, with the version held still.
#[tokio::test(flavor = "multi_thread")]
async fn a_use_that_began_after_the_request_keeps_the_version_as_it_is() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let user = instance(&platform, "notes", "1.0.0").await;
    let version = platform.get(&catalog("/notes/versions/1.0.0")).await.with(200);
    let before = told(&platform, &version).await;
    let version_id = version["id"].as_str().unwrap().parse().unwrap();
    let asked = Retirement { version_id, when: When::Now, grace_seconds: 0, by: somebody() };
    let run = platform.story.start_workflow(&asked, start()).await.unwrap().id;
    assert_eq!(platform.story.ends(run).await, RunState::Failed);
    let shown = platform.get(&format!("/api/v1/admin/workflows/{run}")).await.with(200);
    assert_eq!(shown["error"]["code"], "version_in_use");
    assert!(shown["error"]["message"].as_str().unwrap().contains(&user.to_string()), "{shown:#}");
    assert_eq!(status(&platform, "1.0.0").await, "active");
    assert_eq!(told(&platform, &version).await, before, "nothing happened");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_during_the_grace_period_leaves_the_version_deprecated() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    let run = retire(&platform, "1.0.0").await;
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.post(&format!("/api/v1/admin/workflows/{run}/cancel"), json!({})).await.with(202);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    assert_eq!(status(&platform, "1.0.0").await, "deprecated");
    let done = act(&platform, "notes", "1.0.0", "retire", json!({ "when": "now" })).await.with(200);
    assert_eq!(done["status"], "retired", "it can be asked for again");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_needs_no_grace() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    let done = act(&platform, "notes", "1.0.0", "retire", json!({})).await.with(200);
    assert_eq!((&done["status"], &done["workflow"]["status"]), (&json!("retired"), &json!("succeeded")));
    platform.end().await;
}

/// What a rollback to a deprecated version does: hold the version still, look, make a reference.
async fn use_version(platform: &Platform, version: &str) -> bool {
    let mut tx = platform.story.pool.begin().await.unwrap();
    let held = app_versions::hold_for_use(&mut tx, "notes", version).await.unwrap().unwrap();
    if held.status == domain::VersionStatus::Retired {
        return false;
    }
    sqlx::query(
        "insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status, operating_mode,
             control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
         select $1, org_id, id, 'notes', $2, 'late', 'requested', 'tenant_dedicated', 'project', 'launchable_oci', '{}', '{}',
             '{}', 'c', $1 from projects where id = $3",
    )
    .bind(Uuid::now_v7())
    .bind(version)
    .bind(crate::support::realm::EXAMPLE)
    .execute(&mut *tx)
    .await
    .unwrap();
    tx.commit().await.unwrap();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_retirement_and_a_deployment_that_meet_exactly_one_proceeds() {
    let platform = Platform::new().await;
    let mut outcomes = [0, 0];
    for round in 0..20 {
        let version = format!("1.0.{round}");
        register(&platform, "notes", &version).await;
        let path = admin_catalog(&format!("/notes/versions/{version}/retire"));
        let (answer, used) = join(platform.post(&path, json!({})), use_version(&platform, &version)).await;
        let run: Uuid = answer.with(202)["workflow"]["id"].as_str().unwrap().parse().unwrap();
        if used {
            platform.story.until(run, &[RunState::Waiting]).await;
        } else {
            assert_eq!(platform.story.ends(run).await, RunState::Succeeded);
        }
        let retired = status(&platform, &version).await == "retired";
        assert!(retired != used, "{version}: retired {retired}, used {used}");
        outcomes[usize::from(used)] += 1;
    }
    println!("retired first {}, used first {}", outcomes[0], outcomes[1]);
    platform.end().await;
}
