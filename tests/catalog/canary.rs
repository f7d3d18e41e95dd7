//! A canary opens a version to some projects, only ever to more, and takes itself back when it fails too often.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use store::canary_samples::{self, Outcome};
use uuid::Uuid;

use super::{act, acts, artifact, catalog, register, told};
use crate::http::admin;
use crate::support::control_plane::Platform;
use crate::support::docker::PORT;
use crate::support::platform::{self, profile};
use crate::support::realm::{EXAMPLE, FAR_AWAY, NEXT_DOOR};
use crate::support::registry::shelve;

async fn staged(platform: &Platform) -> Value {
    let version = register(platform, "notes", "1.0.0").await;
    artifact(platform, "notes", "1.0.0", "verified", &["prod"]).await;
    acts(platform, "notes", "1.0.0", "stage", json!({})).await;
    version
}

/// A deployment of the version ended.
async fn deployed(platform: &Platform, version: &Value, failed: bool) -> bool {
    let id: Uuid = version["id"].as_str().unwrap().parse().unwrap();
    let outcome =
        Outcome { run_id: Uuid::now_v7(), project_id: NEXT_DOOR, failed, thread: "c-deploy".into() };
    let mut tx = platform.story.pool.begin().await.unwrap();
    let halted = canary_samples::record(&mut tx, id, outcome).await.unwrap();
    tx.commit().await.unwrap();
    halted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_fails_too_often_goes_back_to_staged_with_the_evidence() {
    let platform = Platform::new().await;
    let version = staged(&platform).await;
    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 50 })).await;
    for _ in 0..2 {
        assert!(!deployed(&platform, &version, true).await, "too few to tell");
    }
    for _ in 0..18 {
        assert!(!deployed(&platform, &version, false).await, "two of twenty are tolerated");
    }
    assert!(deployed(&platform, &version, true).await, "three of twenty-one are not");
    assert!(!deployed(&platform, &version, true).await, "it has gone back already");

    let halted = platform.get(&catalog("/notes/versions/1.0.0")).await.with(200);
    assert_eq!((&halted["status"], &halted["canary"]), (&json!("staged"), &json!(null)));
    let evidence = &halted["evidence"];
    assert_eq!((&evidence["succeeded"], &evidence["failed"]), (&json!(18), &json!(3)));
    assert_eq!(evidence["max_failure_rate"], json!(0.1));
    let events = told(&platform, &version).await;
    assert_eq!(events.iter().filter(|event| *event == "apps.version.canary_halted").count(), 1);
    let log = platform.get("/api/v1/admin/audit?action=halt_canary").await.with(200);
    assert_eq!(log["items"].as_array().unwrap().len(), 1);

    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 50 })).await;
    assert!(!deployed(&platform, &version, true).await, "the next canary begins anew");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_told_twice_counts_once() {
    let platform = Platform::new().await;
    let version = staged(&platform).await;
    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 50 })).await;
    let id: Uuid = version["id"].as_str().unwrap().parse().unwrap();
    let outcome =
        Outcome { run_id: Uuid::now_v7(), project_id: EXAMPLE, failed: true, thread: "c-deploy".into() };
    for _ in 0..30 {
        let mut tx = platform.story.pool.begin().await.unwrap();
        assert!(!canary_samples::record(&mut tx, id, outcome).await.unwrap());
        tx.commit().await.unwrap();
    }
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_canary_only_grows() {
    let platform = Platform::new().await;
    staged(&platform).await;
    let nobody = act(&platform, "notes", "1.0.0", "canary", json!({})).await.with(400);
    assert_eq!(nobody["details"]["errors"][0]["pointer"], "/percent");
    let stranger = json!({ "project_ids": [EXAMPLE, Uuid::now_v7()] });
    let unknown = act(&platform, "notes", "1.0.0", "canary", stranger).await.with(400);
    assert_eq!(unknown["details"]["errors"][0]["pointer"], "/project_ids/1");

    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 20, "project_ids": [NEXT_DOOR] })).await;
    let shrunk = act(&platform, "notes", "1.0.0", "canary", json!({ "percent": 10 })).await.with(400);
    assert_eq!(shrunk["details"]["errors"][0]["message"], "must be at least 20: a running canary only grows");
    let grown = acts(&platform, "notes", "1.0.0", "canary", json!({ "project_ids": [FAR_AWAY] })).await;
    assert_eq!(grown["canary"], json!({ "percent": 20, "project_ids": [NEXT_DOOR, FAR_AWAY] }));
    let seen = platform.acting("viewer").get(&catalog("/notes/versions/1.0.0")).await.with(200);
    assert_eq!(seen["canary"], json!({ "percent": 20 }), "who is on the list is not everybody's business");
    acts(&platform, "notes", "1.0.0", "rollback", json!({ "reason": "enough" })).await;
    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 5 })).await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_held_where_it_is_however_well_it_goes_until_somebody_moves_it() {
    let platform = Platform::new().await;
    let version = staged(&platform).await;
    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 10 })).await;
    for _ in 0..60 {
        assert!(!deployed(&platform, &version, false).await);
    }
    platform.story.advance(Duration::from_secs(30 * 86_400)).await;
    assert!(!deployed(&platform, &version, false).await);
    let held = platform.get(&catalog("/notes/versions/1.0.0")).await.with(200);
    assert_eq!((&held["status"], &held["canary"]["percent"]), (&json!("canary"), &json!(10)));
    let moves = "select count(*) from audit where target = $1 and action like 'version.%'";
    let moves =
        sqlx::query_scalar::<_, i64>(moves).bind(format!("version:{}", version["id"].as_str().unwrap()));
    assert_eq!(moves.fetch_one(&platform.story.pool).await.unwrap(), 2, "staged and begun, by somebody");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_that_fail_take_their_canary_back() {
    let platform = platform::Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let samples = admin(&format!("/policies/project/{EXAMPLE}/canary.min_samples"));
    platform.http.put(&samples, json!({ "value": 2 })).await.with(200);
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30) })).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    acts(&platform.http, "hello", &number, "stage", json!({})).await;
    acts(&platform.http, "hello", &number, "canary", json!({ "percent": 100 })).await;
    platform.entitle(true).await;
    let (_, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let status = async || {
        platform.http.get(&catalog(&format!("/hello/versions/{number}"))).await.with(200)["status"].clone()
    };
    assert_eq!(status().await, "canary", "one deployment tells nothing");
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (_, run) = platform.deploy_version(allocation, &number, 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(status().await, "staged", "one of two failed");
    let body = json!({ "app_slug": "hello", "version": number, "display_name": "late" });
    assert_eq!(platform.create(body).await.with(409)["code"], "state_conflict");
    agent.end().await;
    platform.end().await;
}
