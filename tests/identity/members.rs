//! Members and roles: what is given holds at once, and nobody gives what they do not hold.

use axum::http::Method;
use serde_json::{Value, json};

use crate::http::{Http, organization, project};
use crate::support::realm;
use crate::support::story::Story;

async fn newcomer(story: &Story, name: &str) {
    realm::sign_in(&mut story.pool.acquire().await.unwrap(), name).await;
}

fn member(path: fn(&str) -> String, made: &Value) -> String {
    path(&format!("/members/{}", made["id"].as_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_taken_in_given_another_role_and_let_go() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    newcomer(&story, "ada").await;
    let (admin, ada) = (http.acting("project-admin"), http.acting("ada"));
    let runs = project("/workflows");
    assert_eq!(ada.get(&runs).await.status, 404);

    let added = admin.post(&project("/members"), json!({ "username": "ada", "role": "viewer" })).await;
    let tag = added.header("etag").to_owned();
    let made = added.with(201);
    assert_eq!(ada.get(&runs).await.status, 200);
    assert_eq!(ada.get(&project("/members")).await.with(403)["code"], "insufficient_permissions");
    let again = admin.post(&project("/members"), json!({ "username": "ada", "role": "admin" })).await;
    assert_eq!(again.with(409)["code"], "already_exists");

    let path = member(project, &made);
    let raise = json!({ "role": "admin" });
    let raised = admin.send(Method::PATCH, &path, &[("if-match", &tag)], Some(raise.clone())).await.with(200);
    assert_eq!(raised["role"], "admin");
    let stale = admin.send(Method::PATCH, &path, &[("if-match", &tag)], Some(raise)).await;
    assert_eq!(stale.with(412)["code"], "precondition_failed");
    assert_eq!(ada.get(&project("/members")).await.status, 200);

    assert_eq!(admin.delete(&path).await.status, 204);
    assert_eq!(ada.get(&runs).await.with(404)["code"], "project_not_found");
    assert_eq!(admin.delete(&path).await.with(404)["code"], "member_not_found");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_and_roles_that_do_not_exist_are_told_apart() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for (body, status, code) in [
        (json!({ "username": "nobody-yet", "role": "viewer" }), 404, "user_not_found"),
        (json!({ "username": "viewer", "role": "emperor" }), 404, "role_not_found"),
        (json!({ "username": "viewer", "role": "owner" }), 404, "role_not_found"),
        (json!({ "role": "viewer" }), 400, "validation_error"),
    ] {
        let refused = http.post(&project("/members"), body.clone()).await.with(status);
        assert_eq!(refused["code"], code, "{body}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_role_gives_exactly_its_keys_and_follows_its_changes() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    newcomer(&story, "ada").await;
    let owner = http.acting("owner");
    let role = json!({ "name": "night-shift", "permissions": ["workflows.read"] });
    let role = owner.post(&organization("/roles"), role).await.with(201);
    let path = organization(&format!("/roles/{}", role["id"].as_str().unwrap()));
    let body = json!({ "username": "ada", "role": "night-shift" });
    let made = owner.post(&project("/members"), body).await.with(201);
    assert_eq!(made["role_id"], role["id"]);

    let ada = http.acting("ada");
    assert_eq!(ada.get(&project("/workflows")).await.status, 200);
    assert_eq!(ada.get(&project("/audit")).await.status, 403);
    owner.patch(&path, json!({ "permissions": ["audit.read"] })).await.with(200);
    assert_eq!(ada.get(&project("/workflows")).await.status, 403);
    assert_eq!(ada.get(&project("/audit")).await.status, 200);

    assert_eq!(owner.delete(&path).await.with(409)["code"], "state_conflict");
    assert_eq!(owner.delete(&member(project, &made)).await.status, 204);
    assert_eq!(owner.delete(&path).await.status, 204);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_roles_and_keys_of_the_platform_are_out_of_reach() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for body in [
        json!({ "name": "operator", "permissions": ["workflows.read"] }),
        json!({ "name": "lords", "permissions": ["nodes.manage"] }),
        json!({ "name": "lords", "permissions": [] }),
        json!({ "name": "Lords!", "permissions": ["workflows.read"] }),
    ] {
        let refused = http.acting("owner").post(&organization("/roles"), body.clone()).await.with(400);
        assert_eq!(refused["code"], "validation_error", "{body}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_decides_on_members_cannot_raise_anybody_above_themselves() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for name in ["ada", "bob"] {
        newcomer(&story, name).await;
    }
    let role = json!({ "name": "doorkeeper", "permissions": ["iam.member.manage", "workflows.read"] });
    http.acting("owner").post(&organization("/roles"), role).await.with(201);
    http.post(&project("/members"), json!({ "username": "ada", "role": "doorkeeper" })).await.with(201);
    let ada = http.acting("ada");

    let refused =
        ada.post(&project("/members"), json!({ "username": "bob", "role": "viewer" })).await.with(403);
    assert_eq!(refused["code"], "insufficient_permissions");
    ada.post(&project("/members"), json!({ "username": "bob", "role": "doorkeeper" })).await.with(201);
    // Nor take away, or lower, what is above them.
    let page = ada.get(&project("/members")).await.with(200);
    let admin = page["items"].as_array().unwrap().iter().find(|m| m["username"] == "project-admin").unwrap();
    assert_eq!(ada.delete(&member(project, admin)).await.status, 403);
    assert_eq!(ada.patch(&member(project, admin), json!({ "role": "doorkeeper" })).await.status, 403);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_one_place_is_not_found_in_another() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let page = http.get(&project("/members")).await.with(200);
    let here = page["items"][0].clone();
    let next_door = format!("/api/v1/projects/{}/members/{}", realm::NEXT_DOOR, here["id"].as_str().unwrap());
    assert_eq!(http.delete(&next_door).await.with(404)["code"], "member_not_found");
    assert_eq!(http.delete(&member(organization, &here)).await.with(404)["code"], "member_not_found");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn organizations_and_projects_are_made_listed_and_renamed_by_the_platform() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let org = http.post("/api/v1/admin/organizations", json!({ "slug": "acme" })).await.with(201);
    assert_eq!(org["display_name"], "acme");
    let body = json!({ "org_id": org["id"], "slug": "vision", "display_name": "Vision" });
    let made = http.post("/api/v1/admin/projects", body.clone()).await.with(201);
    assert_eq!(http.post("/api/v1/admin/projects", body).await.with(409)["code"], "already_exists");
    let page =
        http.get(&format!("/api/v1/admin/projects?org_id={}", org["id"].as_str().unwrap())).await.with(200);
    assert_eq!(page["items"], json!([made]));
    let path = format!("/api/v1/admin/projects/{}", made["id"].as_str().unwrap());
    let renamed = http.patch(&path, json!({ "display_name": "Eyes" })).await.with(200);
    assert_eq!((&renamed["display_name"], &renamed["slug"]), (&json!("Eyes"), &json!("vision")));
    // What was just made is a place like any other.
    let members = format!("/api/v1/projects/{}/members", made["id"].as_str().unwrap());
    assert_eq!(http.get(&members).await.with(200)["items"], json!([]));
    story.end().await;
}
