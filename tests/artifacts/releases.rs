//! Releases of the platform: named once, for good, and to be had by everybody who is signed in.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use super::yard::Yard;
use crate::http::{admin, project};
use crate::support::image::{Image, digest};

const RELEASES: &str = "/api/v1/platform/releases";

/// A blob that was published and verified like any other.
async fn published(yard: &Yard, name: &str, bytes: &'static [u8]) -> Value {
    let intent = yard.intent(json!({ "artifact_name": name, "artifact_kind": "blob" })).await;
    let request = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    let sent = yard.http.bearing("").answer_to(request.body(Body::from(bytes)).unwrap()).await;
    assert_eq!(sent.status, 200);
    let wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": name, "artifact_kind": "blob", "digest": digest(bytes),
    });
    yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await.with(201)
}

async fn verified(yard: &Yard, artifact: &Value) -> Value {
    yard.act("publisher", artifact, "verify", json!({})).await.with(200)
}

async fn bytes(yard: &Yard, path: &str) -> Vec<u8> {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let answer = yard.http.acting("newcomer").open(request).await;
    assert_eq!(answer.status(), 200);
    axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_names_what_was_verified_and_everybody_gets_the_very_bytes() {
    let yard = Yard::new().await;
    let cli = published(&yard, "cli", b"a program").await;
    let image = yard.publish(&Image::saying("the platform")).await;
    let release = |name: &str, artifact: &Value| json!({ "name": name, "artifact_id": artifact["id"] });
    let wanted = json!({ "version": "1.2.0", "artifacts": [release("gpuaas-linux", &cli), release("server", &image)] });
    let early = yard.http.post(&admin("/platform/releases"), wanted.clone()).await.with(422);
    assert_eq!(early["code"], "artifact_untrusted", "nothing was verified yet");
    verified(&yard, &cli).await;
    verified(&yard, &image).await;
    let made = yard.http.post(&admin("/platform/releases"), wanted.clone()).await.with(201);
    assert_eq!(
        yard.http.post(&admin("/platform/releases"), wanted).await.with(409)["code"],
        "already_exists"
    );

    let everybody = yard.http.acting("newcomer");
    assert_eq!(everybody.get(RELEASES).await.with(200)["items"], json!([made]));
    assert_eq!(everybody.get(&format!("{RELEASES}/1.2.0")).await.with(200), made);
    let path = made["artifacts"][0]["download_path"].as_str().unwrap();
    assert_eq!(bytes(&yard, path).await, b"a program");
    let sums = bytes(&yard, &path.replace("gpuaas-linux", "SHA256SUMS")).await;
    let line = format!("{}  gpuaas-linux\n", digest(b"a program").hex());
    assert_eq!(String::from_utf8(sums).unwrap(), line, "images are pulled, not downloaded");

    let pulls = format!("{RELEASES}/1.2.0/artifacts/server/pull-intents");
    let intent = everybody.post(&pulls, json!({})).await.with(201);
    let reader = yard.speak(image["repository"].as_str().unwrap(), &yard.unwrap(&intent).await);
    assert_eq!(
        reader.manifest(image["digest"].as_str().unwrap()).await.unwrap().digest.as_str(),
        image["digest"]
    );
    assert_eq!(everybody.get(&format!("{RELEASES}/9.9.9")).await.with(404)["code"], "release_not_found");
    let refused = yard.act("project-admin", &cli, "retire", json!({ "when": "now" })).await.with(409);
    assert_eq!(refused["details"]["references"]["releases"], json!(["1.2.0"]));

    let judged = async |trust: &'static str| {
        let judge = "update app_artifacts set trust_state = $2 where id = $1::text::uuid";
        let judge = sqlx::query(judge).bind(cli["id"].as_str().unwrap()).bind(trust);
        judge.execute(&yard.story.pool).await.unwrap();
    };
    judged("failed_verification").await;
    let refused = everybody.get(path).await.with(422);
    assert_eq!(refused["details"]["state"], "failed_verification", "its bytes are not what was released");
    judged("verified").await;
    yard.act("project-admin", &cli, "revoke", json!({})).await.with(200);
    assert_eq!(everybody.get(path).await.with(422)["code"], "artifact_untrusted");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_makes_no_sense_is_refused_with_every_reason() {
    let yard = Yard::new().await;
    let cli = published(&yard, "cli", b"a program").await;
    verified(&yard, &cli).await;
    let unknown = "01970000-0000-7000-8000-00000000000b";
    let wanted = json!({ "version": "1.2.0", "artifacts": [
        { "name": "cli", "artifact_id": cli["id"] }, { "name": "cli", "artifact_id": unknown },
    ] });
    let refused = yard.http.post(&admin("/platform/releases"), wanted).await.with(400);
    let pointers: Vec<&str> = refused["details"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/artifacts/1/name", "/artifacts/1/artifact_id"]);
    yard.end().await;
}
