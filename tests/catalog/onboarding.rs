//! From an app team's manifest to a draft in the catalog.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use super::{acts, artifact, catalog, manifest, register, told};
use crate::http::{admin, project};
use crate::support::control_plane::Platform;
use crate::support::realm::{EXAMPLE, NEXT_DOOR};

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_is_reviewed_with_what_it_changes_and_becomes_a_draft() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    let mut next = manifest("notes", "1.1.0");
    next["app"]["display_name"] = json!("Better notes");
    let team = platform.acting("publisher");
    let sent = team.post(&project("/apps/manifests"), next).await.with(201);
    assert_eq!((&sent["status"], &sent["project_id"]), (&json!("pending"), &json!(EXAMPLE)));
    platform.get(&catalog("/notes/versions/1.1.0")).await.with(404);

    let path = admin(&format!("/apps/submissions/{}", sent["id"].as_str().unwrap()));
    let review = platform.get(&path).await.with(200);
    assert_eq!(review["previous_version"], "1.0.0");
    let changed: Vec<&str> =
        review["diff"].as_array().unwrap().iter().map(|line| line["pointer"].as_str().unwrap()).collect();
    assert_eq!(changed, ["/app/display_name", "/version/version"]);
    assert_eq!(review["diff"][0]["after"], "Better notes");

    let approved = platform.post(&format!("{path}/approve"), json!({ "reason": "fine" })).await.with(200);
    assert_eq!((&approved["status"], &approved["reason"]), (&json!("approved"), &json!("fine")));
    let version = platform.get(&catalog("/notes/versions/1.1.0")).await.with(200);
    assert_eq!(version["status"], "draft");
    assert_eq!(told(&platform, &version).await, ["apps.version.registered"]);
    let app = platform.get(&catalog("/notes")).await.with(200);
    assert_eq!((&app["newest_version"], &app["active_version"]), (&json!("1.1.0"), &json!(null)));
    let again = platform.post(&format!("{path}/reject"), json!({ "reason": "too late" })).await.with(409);
    assert_eq!((&again["code"], &again["details"]["state"]), (&json!("state_conflict"), &json!("approved")));
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_content_is_one_submission_and_other_content_takes_its_place() {
    let platform = Platform::new().await;
    let team = platform.acting("publisher");
    let path = project("/apps/manifests");
    let first = team.post(&path, manifest("notes", "1.0.0")).await.with(201);
    let again = team.post(&path, manifest("notes", "1.0.0")).await.with(200);
    assert_eq!(again["id"], first["id"]);
    let mut other = manifest("notes", "1.0.0");
    other["app"]["description"] = json!("Now with words.");
    let second = team.post(&path, other).await.with(201);
    assert_ne!(second["id"], first["id"]);
    let all = team.get(&project("/apps/submissions")).await.with(200);
    let standing: Vec<&str> =
        all["items"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(standing, ["superseded", "pending"]);

    let decide = admin(&format!("/apps/submissions/{}/reject", second["id"].as_str().unwrap()));
    let bare = platform.post(&decide, json!({})).await.with(400);
    assert_eq!(bare["details"]["errors"][0]["pointer"], "/reason");
    platform.post(&decide, json!({ "reason": "say what it does" })).await.with(200);
    let mine = team.get(&project("/apps/submissions?status=rejected")).await.with(200);
    assert_eq!(mine["items"][0]["reason"], "say what it does");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_content_that_is_sent_again_is_a_submission_of_its_own() {
    let platform = Platform::new().await;
    let (team, path) = (platform.acting("publisher"), project("/apps/manifests"));
    let first = manifest("notes", "1.0.0");
    let mut other = first.clone();
    other["app"]["description"] = json!("Now with words.");
    let approve = async |sent: &Value| {
        let path = admin(&format!("/apps/submissions/{}/approve", sent["id"].as_str().unwrap()));
        platform.post(&path, json!({})).await.with(200);
    };
    let content =
        async || platform.get(&catalog("/notes/versions/1.0.0")).await.with(200)["content_digest"].clone();
    let one = team.post(&path, first.clone()).await.with(201);
    approve(&one).await;
    let again = team.post(&path, first.clone()).await.with(200);
    assert_eq!(again["id"], one["id"], "the catalog has it");
    team.post(&path, other.clone()).await.with(201);
    let back = team.post(&path, first.clone()).await.with(201);
    assert_ne!(back["id"], one["id"], "other content was about to take its place");
    let two = team.post(&path, other).await.with(201);
    approve(&two).await;
    assert_eq!(content().await, two["content_digest"]);

    let back = team.post(&path, first.clone()).await.with(201);
    assert_eq!((&back["status"], &back["content_digest"]), (&json!("pending"), &one["content_digest"]));
    assert_eq!(team.post(&path, first).await.with(200)["id"], back["id"]);
    approve(&back).await;
    assert_eq!(content().await, one["content_digest"], "what was approved last is what the catalog has");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_left_draft_keeps_its_content() {
    let platform = Platform::new().await;
    let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    let first = register(&platform, "notes", "1.0.0").await;
    let same = platform.post(&path, manifest("notes", "1.0.0")).await.with(200);
    assert_eq!((&same["id"], &same["content_digest"]), (&first["id"], &first["content_digest"]));
    let mut other = manifest("notes", "1.0.0");
    other["app"]["description"] = json!("changed while a draft");
    let changed = platform.post(&path, other.clone()).await.with(201);
    assert_eq!(changed["id"], first["id"]);
    assert_ne!(changed["content_digest"], first["content_digest"]);

    artifact(&platform, "notes", "1.0.0", "verified", &[]).await;
    acts(&platform, "notes", "1.0.0", "stage", json!({})).await;
    platform.post(&path, other).await.with(200);
    for (who, path) in [("admin", path), ("publisher", project("/apps/manifests"))] {
        let refused = platform.acting(who).post(&path, manifest("notes", "1.0.0")).await.with(409);
        assert_eq!(
            (&refused["code"], &refused["details"]["state"]),
            (&json!("state_conflict"), &json!("staged"))
        );
    }
    let forged = sqlx::query("update app_versions set manifest = '{}'").execute(&platform.story.pool).await;
    assert!(forged.is_err(), "the database keeps it too");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slug_belongs_to_whoever_registered_it_first() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    let neighbour = platform.acting("neighbour");
    let path = format!("/api/v1/projects/{NEXT_DOOR}/apps/manifests");
    let refused = neighbour.post(&path, manifest("notes", "2.0.0")).await.with(403);
    assert_eq!(refused["code"], "ownership_required");
    let path = admin(&format!("/apps/manifests?owner_project_id={NEXT_DOOR}"));
    assert_eq!(
        platform.post(&path, manifest("notes", "2.0.0")).await.with(403)["code"],
        "ownership_required"
    );
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_and_json_say_the_same_and_every_problem_is_told_with_its_place() {
    let platform = Platform::new().await;
    let team = platform.acting("publisher");
    let yaml = |text: &'static str| {
        let request = Request::post(project("/apps/manifests")).header("content-type", "application/yaml");
        team.answer_to(request.body(Body::from(text)).unwrap())
    };
    let good = "app: {slug: notes, display_name: notes, category: tests, runtime_backend: launchable_oci}\nversion:\n  version: 1.0.0\n  runtime_profile: {kind: launchable_oci, ports: [{container: 8080}]}\n";
    let sent = yaml(good).await.with(201);
    let json = team.post(&project("/apps/manifests"), manifest("notes", "1.0.0")).await;
    assert_eq!(json.with(200)["id"], sent["id"]);
    let bad = yaml(
        "app: {slug: N, display_name: notes, runtime_backend: launchable_oci}\nversion:\n  version: ''\n",
    )
    .await;
    let problems = bad.with(400)["details"]["errors"].clone();
    let slug = problems.as_array().unwrap().iter().find(|problem| problem["pointer"] == "/app/slug").unwrap();
    assert_eq!((&slug["line"], &slug["column"]), (&json!(1), &json!(13)));
    assert!(problems.as_array().unwrap().len() >= 2, "{problems:#}");
    platform.end().await;
}
