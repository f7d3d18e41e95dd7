//! What publishing leaves behind is cleared away: what nobody fetched, used or registered goes, and nothing that a
//! registration needs goes with it.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use engine::{RunState, Start};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::reconcilers::retention::ClearAway;

use super::signer;
use super::yard::{OURS, Yard};
use crate::support::image::{Image, MANIFEST};

const LONG: Duration = Duration::from_secs(8 * 86_400);

async fn start(yard: &Yard) -> Uuid {
    let options = Start { correlation_id: "c-clear".into(), ..Start::default() };
    let mut tx = yard.story.pool.begin().await.unwrap();
    let mut run = yard.story.engine.start(&mut tx, &ClearAway {}, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    run.id
}

async fn cleared(yard: &Yard) {
    let run = start(yard).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
}

/// A look that is not over: it waits for an upload that somebody writes to.
async fn waiting(yard: &Yard) -> (Uuid, PathBuf, File) {
    let upload = abandoned(yard).await;
    yard.story.advance(LONG).await;
    let writing = File::options().write(true).open(&upload).unwrap();
    writing.lock().unwrap();
    let run = start(yard).await;
    let waits = "select state = 'waiting' and cause = 'backoff' from engine.run where id = $1 and $2::text[] is not null";
    yard.story.until_true("the run backs off", waits, run, &[]).await;
    (run, upload, writing)
}

async fn goes_on(yard: &Yard, run: Uuid, writing: File) {
    drop(writing);
    yard.story.advance(Duration::from_secs(61)).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
}

async fn has(yard: &Yard, reference: &str) -> bool {
    yard.registry.client().repository(OURS).find_manifest(reference).await.unwrap().is_some()
}

/// The registry tells of a push a moment after it answered.
async fn told_of(yard: &Yard, digest: &str) {
    let told = "select exists (select 1 from registry_pushes where digest = $2[1]) and $1::uuid is not null";
    yard.story.until_true("the registry told of the push", told, Uuid::nil(), &[digest]).await;
}

async fn count(yard: &Yard, table: &'static str) -> i64 {
    let all = format!("select count(*) from {table}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(all)).fetch_one(&yard.story.pool).await.unwrap()
}

/// An upload that never came to its end, and the file it left.
async fn abandoned(yard: &Yard) -> PathBuf {
    let intent = yard.intent(json!({ "artifact_name": "weights", "artifact_kind": "blob" })).await;
    let request = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    let part = request.header("content-range", "bytes 0-3/8").body(Body::from("half")).unwrap();
    yard.http.bearing("").answer_to(part).await.with(200);
    yard.blobs.0.join("incoming").join(intent["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_registered_goes_and_what_is_registered_stays_with_all_that_vouches_for_it() {
    let yard = Yard::new().await;
    let (image, stray) = (Image::saying("hello"), Image::saying("never registered"));
    let holder = yard.push(&image).await;
    signer::cosign(&holder, 1, &image.digest, &image.digest).await;
    signer::attest(&holder, 1, &image.digest, "https://ci.example").await;
    signer::bundle(&holder, 1, &image.digest).await;
    let artifact: Value = yard.register(&image, json!({})).await.with(201);
    let pull = json!({ "artifact_id": artifact["id"] });
    let pulls = crate::http::project("/app-artifacts/pull-intents");
    yard.http.acting("publisher").post(&pulls, pull).await.with(201);
    let holder = yard.push(&stray).await;
    signer::cosign(&holder, 1, &stray.digest, &stray.digest).await;
    let tag = |image: &Image| format!("sha256-{}", image.digest.hex());
    let [sig, att, bundle] = [format!("{}.sig", tag(&image)), format!("{}.att", tag(&image)), tag(&image)];
    let lost = format!("{}.sig", tag(&stray));
    let upload = abandoned(&yard).await;
    for reference in [stray.digest.as_str(), image.digest.as_str(), &sig, &bundle, &lost] {
        let found = yard.registry.client().repository(OURS).manifest(reference).await.unwrap();
        told_of(&yard, found.digest.as_str()).await;
    }

    cleared(&yard).await;
    assert!(has(&yard, stray.digest.as_str()).await && upload.exists(), "it may still be registered");
    yard.story.advance(LONG).await;
    cleared(&yard).await;
    assert!(!has(&yard, stray.digest.as_str()).await, "nobody registered it");
    assert!(!has(&yard, &lost).await, "nor is there anything it vouches for");
    for needed in [image.digest.as_str(), &sig, &att, &bundle] {
        assert!(has(&yard, needed).await, "{needed} is needed");
    }
    assert!(!upload.exists(), "nobody finished the upload");
    for table in ["wrapped_secrets", "registry_credentials", "pull_intents"] {
        assert_eq!(count(&yard, table).await, 0, "{table}");
    }
    assert_eq!(count(&yard, "publish_intents").await, 1, "that of the artifact");

    let late = yard.register(&stray, json!({})).await.with(400);
    assert_eq!(late["details"]["errors"][0]["pointer"], "/digest", "{late:#}");
    yard.push(&stray).await;
    yard.register(&stray, json!({})).await.with(201);
    cleared(&yard).await;
    assert!(has(&yard, stray.digest.as_str()).await, "it was pushed again and is needed now");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_somebody_writes_to_is_waited_for() {
    let yard = Yard::new().await;
    let (run, upload, writing) = waiting(&yard).await;
    assert!(upload.exists());
    goes_on(&yard, run, writing).await;
    assert!(!upload.exists());
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_is_going_is_not_registered_until_it_is_gone() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let holder = yard.push(&image).await;
    told_of(&yard, image.digest.as_str()).await;
    sqlx::query("update registry_pushes set going_at = engine.now()")
        .execute(&yard.story.pool)
        .await
        .unwrap();
    let refused = yard.register(&image, json!({})).await;
    assert_eq!(refused.header("retry-after"), "10");
    assert_eq!(refused.with(409)["code"], "operation_in_progress");
    sqlx::query("update registry_pushes set deleted_at = engine.now()")
        .execute(&yard.story.pool)
        .await
        .unwrap();
    yard.story.advance(Duration::from_secs(1)).await;
    holder.push_manifest("1.0.0", MANIFEST, &image.manifest).await.unwrap();
    yard.register(&image, json!({})).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_condemned_and_is_pushed_again_is_taken_once_nobody_deletes() {
    let yard = Yard::new().await;
    let (run, _, writing) = waiting(&yard).await;
    let image = Image::saying("hello");
    let holder = yard.push(&image).await;
    told_of(&yard, image.digest.as_str()).await;
    // As a look leaves it that was given up between its decision and the registry's answer.
    let condemned = "update registry_pushes set going_at = engine.now()";
    sqlx::query(condemned).execute(&yard.story.pool).await.unwrap();
    yard.register(&image, json!({})).await.with(409);
    holder.push_manifest("1.0.0", MANIFEST, &image.manifest).await.unwrap();
    let again = "select count(*) > 1 and $1::uuid is not null from registry_pushes where digest = $2[1]";
    yard.story.until_true("the registry told of both", again, Uuid::nil(), &[image.digest.as_str()]).await;
    yard.register(&image, json!({})).await.with(409);

    goes_on(&yard, run, writing).await;
    yard.register(&image, json!({})).await.with(201);
    yard.end().await;
}
