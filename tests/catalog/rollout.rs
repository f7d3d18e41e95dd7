//! Versions move along the rollout by durable runs, one at a time, through gates that say why they are shut.

use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{act, acts, admin_catalog, artifact, catalog, publish, register, told};
use crate::http::{Http, admin};
use crate::support::control_plane::Platform;
use crate::support::realm::EXAMPLE;

async fn gate(http: &Http, version: &str, action: &str, check: &str) -> Value {
    let path = catalog(&format!("/notes/versions/{version}/gates"));
    let all = http.get(&path).await.with(200);
    let transition =
        all["transitions"].as_array().unwrap().iter().find(|one| one["action"] == action).unwrap();
    transition["gates"].as_array().unwrap().iter().find(|gate| gate["check"] == check).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_goes_from_draft_to_active_as_its_gates_open() {
    let platform = Platform::new().await;
    let version = register(&platform, "notes", "1.0.0").await;
    assert_eq!(version["allowed_actions"], json!(["stage", "retire"]));
    let shut = act(&platform, "notes", "1.0.0", "stage", json!({})).await.with(200);
    assert_eq!((&shut["status"], &shut["workflow"]["status"]), (&json!("draft"), &json!("failed")));
    let run = platform.get(shut["workflow"]["href"].as_str().unwrap()).await.with(200);
    assert_eq!(run["error"]["code"], "gate_red");
    assert_eq!(run["error"]["message"], "Nothing is registered for runtime.");
    assert_eq!(gate(&platform, "1.0.0", "stage", "artifacts_registered").await["light"], "red");

    let artifact = artifact(&platform, "notes", "1.0.0", "unverified", &[]).await;
    acts(&platform, "notes", "1.0.0", "stage", json!({ "reason": "ready" })).await;
    let red = gate(&platform, "1.0.0", "canary", "artifacts_verified").await;
    assert_eq!((&red["light"], &red["message"]), (&json!("red"), &json!("Not verified: runtime.")));
    assert_eq!(red["evidence"]["artifacts"][0]["found"]["artifact_id"], json!(artifact));
    set(&platform, "trust_state = 'verified'").await;
    acts(&platform, "notes", "1.0.0", "canary", json!({ "percent": 10 })).await;
    let shut = act(&platform, "notes", "1.0.0", "publish", json!({})).await.with(200);
    assert_eq!((&shut["status"], &shut["workflow"]["status"]), (&json!("canary"), &json!("failed")));
    set(&platform, "channels = '{prod}'").await;
    let active = acts(&platform, "notes", "1.0.0", "publish", json!({ "reason": "good" })).await;
    assert_eq!((&active["status"], &active["status_reason"]), (&json!("active"), &json!("good")));
    assert_eq!(active["canary"], json!(null));
    acts(&platform, "notes", "1.0.0", "deprecate", json!({})).await;
    assert_eq!(
        told(&platform, &version).await,
        [
            "apps.version.registered",
            "apps.version.staged",
            "apps.version.canary_started",
            "apps.version.activated",
            "apps.version.deprecated",
        ]
    );
    let log = platform.get(&admin("/audit?action=version.staged")).await.with(200);
    let entry = &log["items"][0];
    assert_eq!((&entry["before"]["status"], &entry["after"]["status"]), (&json!("draft"), &json!("staged")));
    assert_eq!((&entry["reason"], &entry["actor"]["role"]), (&json!("ready"), &json!("platform_superadmin")));
    platform.end().await;
}

async fn set(platform: &Platform, what: &str) {
    let statement = format!("update app_artifacts set {what}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&platform.story.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_state_does_not_allow_is_refused_with_what_it_does() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    let refused = act(&platform, "notes", "1.0.0", "publish", json!({})).await.with(409);
    assert_eq!(refused["code"], "state_conflict");
    assert_eq!(refused["details"], json!({ "state": "draft", "allowed_actions": ["stage", "retire"] }));
    let missing = act(&platform, "notes", "9.9.9", "stage", json!({})).await.with(404);
    assert_eq!(missing["code"], "version_not_found");
    let tag = platform.get(&catalog("/notes/versions/1.0.0")).await.header("etag").to_owned();
    let path = admin_catalog("/notes/versions/1.0.0/retire");
    let stale = [("if-match", "\"stale\"")];
    platform.send(axum::http::Method::POST, &path, &stale, Some(json!({}))).await.with(412);
    let fresh = [("if-match", tag.as_str())];
    platform.send(axum::http::Method::POST, &path, &fresh, Some(json!({}))).await.with(202);
    platform.story.quiet().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_promotions_one_wins_and_the_others_learn_who_holds_the_version() {
    let platform = Platform::new().await;
    for round in 0..10 {
        let version = format!("1.0.{round}");
        let draft = register(&platform, "notes", &version).await;
        artifact(&platform, "notes", &version, "verified", &[]).await;
        let path = admin_catalog(&format!("/notes/versions/{version}/stage"));
        let answers = join_all((0..8).map(|_| platform.post(&path, json!({})))).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 202);
        assert_eq!(won.len(), 1, "one wins");
        let holder = won[0].body["workflow"]["id"].clone();
        for answer in lost {
            let body = answer.with(409);
            let named = match body["code"].as_str().unwrap() {
                "operation_in_progress" => body["details"]["workflow_id"] == holder,
                "state_conflict" => body["details"]["state"] == "staged",
                _ => false,
            };
            assert!(named, "{body:#}");
        }
        let run: Uuid = holder.as_str().unwrap().parse().unwrap();
        assert_eq!(platform.story.ends(run).await, engine::RunState::Succeeded);
        assert_eq!(told(&platform, &draft).await, ["apps.version.registered", "apps.version.staged"]);
    }
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn staging_freezes_one_digest_and_later_ones_are_only_candidates() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    artifact(&platform, "notes", "1.0.0", "verified", &["prod"]).await;
    let chosen = artifact(&platform, "notes", "1.0.0", "verified", &["prod"]).await;
    artifact(&platform, "notes", "1.0.0", "revoked", &["prod"]).await;
    acts(&platform, "notes", "1.0.0", "stage", json!({})).await;
    artifact(&platform, "notes", "1.0.0", "unverified", &[]).await;
    let gate = gate(&platform, "1.0.0", "canary", "artifacts_verified").await;
    assert_eq!(gate["light"], "green");
    assert_eq!(gate["evidence"]["artifacts"][0]["found"]["artifact_id"], json!(chosen));
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_deprecates_the_others_only_when_told_to() {
    let platform = Platform::new().await;
    publish(&platform, "notes", "1.0.0").await;
    publish(&platform, "notes", "1.1.0").await;
    let status = |version: &'static str| {
        let http = platform.http.clone();
        async move { http.get(&catalog(&format!("/notes/versions/{version}"))).await.with(200)["status"].clone() }
    };
    assert_eq!(status("1.0.0").await, "active");
    register(&platform, "notes", "2.0.0").await;
    artifact(&platform, "notes", "2.0.0", "verified", &["prod"]).await;
    for (verb, body) in
        [("stage", json!({})), ("canary", json!({ "percent": 1 })), ("publish", json!({ "supersede": true }))]
    {
        acts(&platform, "notes", "2.0.0", verb, body).await;
    }
    assert_eq!(
        [status("1.0.0").await, status("1.1.0").await, status("2.0.0").await],
        ["deprecated", "deprecated", "active"]
    );
    let old = platform.get(&catalog("/notes/versions/1.1.0")).await.with(200);
    assert_eq!(old["status_reason"], "Superseded by 2.0.0.");
    assert_eq!(told(&platform, &old).await.last().unwrap(), "apps.version.deprecated");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_belongs_to_the_team_whose_version_it_moves() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    act(&platform, "notes", "1.0.0", "stage", json!({})).await.with(200);
    let runs =
        platform.acting("publisher").get(&format!("/api/v1/projects/{EXAMPLE}/workflows")).await.with(200);
    assert_eq!(runs["items"][0]["kind"], "version.promote");
    platform.end().await;
}
