//! Pull intents are for whoever asked: who gets one, who opens it, and when it ends.

use axum::http::Method;
use serde_json::json;

use super::yard::{OURS, Yard, unwrapped};
use crate::http::project;
use crate::support::image::Image;
use crate::support::realm::NEXT_DOOR;

const PULLS: &str = "/app-artifacts/pull-intents";

#[tokio::test(flavor = "multi_thread")]
async fn a_second_caller_gets_a_permission_of_their_own_or_none() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let wanted = json!({ "artifact_id": artifact["id"] });
    let path = project(PULLS);
    let key = [("x-idempotency-key", "the-same-for-both")];
    let first =
        yard.http.acting("publisher").send(Method::POST, &path, &key, Some(wanted.clone())).await.with(201);
    let second =
        yard.http.acting("viewer").send(Method::POST, &path, &key, Some(wanted.clone())).await.with(201);
    assert_ne!(first["id"], second["id"], "the answer to one is not the answer to another");
    assert!(second["credential"]["token"].is_string(), "it is no replay: {second:#}");
    let by: Vec<uuid::Uuid> = sqlx::query_scalar("select created_by from pull_intents order by id")
        .fetch_all(&yard.story.pool)
        .await
        .unwrap();
    assert!(by.len() == 2 && by[0] != by[1], "each is written down for whoever asked: {by:?}");

    let next_door = format!("/api/v1/projects/{NEXT_DOOR}{PULLS}");
    let refused = yard.http.acting("neighbour").post(&next_door, wanted.clone()).await.with(404);
    assert_eq!(refused["code"], "artifact_not_found", "whether it exists is not told");
    let refused = yard.http.acting("neighbour").post(&path, wanted.clone()).await.with(404);
    assert_eq!(refused["code"], "project_not_found");
    yard.http.bearing("").post(&path, wanted).await.with(401);

    // What opens it is the token, once, whoever brings it; whoever comes second learns that somebody was first.
    let opened = yard.unwrap(&first).await;
    assert_eq!(unwrapped(&yard, &first).await.status, 400);
    let told = "select count(*) from audit where action = 'unwrap_secret' and result = 'denied'";
    let denied: i64 = sqlx::query_scalar(told).fetch_one(&yard.story.pool).await.unwrap();
    assert_eq!(denied, 1, "and so does whoever reads the audit log");
    let other = yard.unwrap(&second).await;
    for (name, password, may) in [
        (&opened.username, &opened.password, true),
        (&other.username, &other.password, true),
        (&opened.username, &other.password, false),
        (&other.username, &opened.password, false),
    ] {
        let shown = super::yard::Credential { username: name.clone(), password: password.clone() };
        let pulled = yard.speak(OURS, &shown).manifest(image.digest.as_str()).await;
        assert_eq!(pulled.is_ok(), may, "one's password is of no use with the other's name");
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_asked_for_ends_with_the_machine() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let admin = yard.http.acting("project-admin");
    let body = json!({ "name": "ci", "permissions": ["apps.artifact.read"] });
    let made = admin.post(&project("/service-accounts"), body).await.with(201);
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let token = yard.http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    let machine = yard.http.bearing(token["access_token"].as_str().unwrap());
    let intent = machine.post(&project(PULLS), json!({ "artifact_id": artifact["id"] })).await.with(201);
    let reader = yard.speak(OURS, &yard.unwrap(&intent).await);
    reader.manifest(image.digest.as_str()).await.expect("it may pull");
    let account = project(&format!("/service-accounts/{}", made["id"].as_str().unwrap()));
    admin.post(&format!("{account}/disable"), json!({})).await.with(200);
    assert!(reader.manifest(image.digest.as_str()).await.is_err(), "a machine that is disabled pulls on");
    admin.post(&format!("{account}/enable"), json!({})).await.with(200);
    reader.manifest(image.digest.as_str()).await.expect("it may pull again");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_asked_for_ends_with_their_place_in_the_project() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let publisher = yard.speak(OURS, &yard.unwrap(&yard.intent(json!({})).await).await);
    let wanted = json!({ "artifact_id": artifact["id"] });
    let pull = yard.http.acting("publisher").post(&project(PULLS), wanted).await.with(201);
    let reader = yard.speak(OURS, &yard.unwrap(&pull).await);
    publisher.push_bytes(b"more").await.expect("a publisher pushes");
    reader.manifest(image.digest.as_str()).await.expect("and pulls");

    let admin = yard.http.acting("project-admin");
    let members = admin.get(&project("/members")).await.with(200);
    let member = members["items"].as_array().unwrap().iter().find(|one| one["username"] == "publisher");
    let member = project(&format!("/members/{}", member.unwrap()["id"].as_str().unwrap()));
    admin.patch(&member, json!({ "role": "viewer" })).await.with(200);
    assert!(publisher.push_bytes(b"yet more").await.is_err(), "a viewer pushes");
    reader.manifest(image.digest.as_str()).await.expect("a viewer may pull");
    admin.delete(&member).await;
    assert!(reader.manifest(image.digest.as_str()).await.is_err(), "somebody who has left pulls on");
    yard.end().await;
}
