//! Blobs on a disk of the platform's: uploaded in parts, hashed on the way, taken once they are what was said.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use super::yard::Yard;
use crate::http::{Answer, project};
use crate::support::image::digest;

const LARGE: usize = 3 << 20;

fn bytes() -> Vec<u8> {
    (0..LARGE).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

async fn intent(yard: &Yard, more: Value) -> Value {
    let mut wanted = json!({ "artifact_name": "weights", "artifact_kind": "blob" });
    for (name, value) in more.as_object().unwrap() {
        wanted[name] = value.clone();
    }
    yard.intent(wanted).await
}

async fn upload(yard: &Yard, intent: &Value, range: Option<&str>, bytes: &[u8]) -> Answer {
    let mut request = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    if let Some(range) = range {
        request = request.header("content-range", range);
    }
    yard.http.bearing("").answer_to(request.body(Body::from(bytes.to_vec())).unwrap()).await
}

async fn offset(yard: &Yard, intent: &Value) -> String {
    let path = intent["upload_path"].as_str().unwrap();
    let answer = yard.http.bearing("").send(Method::HEAD, path, &[], None).await;
    assert_eq!(answer.status, 204);
    answer.header("upload-offset").to_owned()
}

async fn register(yard: &Yard, bytes: &[u8], more: Value) -> Answer {
    let mut wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "weights", "artifact_kind": "blob", "digest": digest(bytes),
    });
    for (name, value) in more.as_object().unwrap() {
        wanted[name] = value.clone();
    }
    yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_broke_off_goes_on_and_is_taken_once_it_is_whole() {
    let yard = Yard::new().await;
    let (bytes, intent) = (bytes(), intent(&yard, json!({})).await);
    assert_eq!(intent["source_uri"], yard.source_uri("weights"));
    assert_eq!((&intent["upload_method"], &intent["source_type"]), (&json!("PUT"), &json!("artifact_store")));
    assert_eq!(intent["credential"], json!(null), "a blob needs none");
    let early = register(&yard, &bytes, json!({})).await.with(400);
    assert_eq!(early["details"]["errors"][0]["pointer"], "/digest");

    let (head, tail) = bytes.split_at(1 << 20);
    let first = format!("bytes 0-{}/{LARGE}", head.len() - 1);
    let written = upload(&yard, &intent, Some(&first), head).await.with(200);
    assert_eq!(written, json!({ "upload_offset": head.len(), "digest": null }));
    assert_eq!(offset(&yard, &intent).await, head.len().to_string());
    let again = upload(&yard, &intent, Some(&first), head).await.with(409);
    assert_eq!(
        (&again["code"], &again["details"]["upload_offset"]),
        (&json!("state_conflict"), &json!(head.len()))
    );
    let rest = format!("bytes {}-{}/{LARGE}", head.len(), LARGE - 1);
    let short = upload(&yard, &intent, Some(&rest), &tail[..1000]).await.with(400);
    assert_eq!(short["message"], "the upload broke off");
    assert_eq!(offset(&yard, &intent).await, (head.len() + 1000).to_string(), "what arrived stays");
    let rest = format!("bytes {}-{}/{LARGE}", head.len() + 1000, LARGE - 1);
    let written = upload(&yard, &intent, Some(&rest), &tail[1000..]).await.with(200);
    assert_eq!(written, json!({ "upload_offset": LARGE, "digest": digest(&bytes) }));

    let other = register(&yard, b"something else", json!({})).await.with(422);
    assert_eq!(
        (&other["code"], &other["details"]["found"]),
        (&json!("digest_mismatch"), &json!(digest(&bytes)))
    );
    let artifact =
        register(&yard, &bytes, json!({ "size_bytes": LARGE, "source_uri": intent["source_uri"] }))
            .await
            .with(201);
    assert_eq!((&artifact["size_bytes"], &artifact["artifact_kind"]), (&json!(LARGE), &json!("blob")));
    assert_eq!((&artifact["repository"], &artifact["source_uri"]), (&json!(null), &intent["source_uri"]));
    let late = upload(&yard, &intent, None, b"something else").await.with(404);
    assert_eq!(late["code"], "upload_not_found", "what was taken stays what it is");
    assert_eq!(register(&yard, &bytes, json!({})).await.with(409)["code"], "already_exists");
    let judged = yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
    assert_eq!(judged["trust_state"], "verified");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_for_the_same_bytes_goes_on_where_the_upload_stands() {
    let yard = Yard::new().await;
    let bytes = bytes();
    let wanted = json!({ "expected_digest": digest(&bytes) });
    let first = intent(&yard, wanted.clone()).await;
    let (head, tail) = bytes.split_at(1 << 20);
    upload(&yard, &first, Some(&format!("bytes 0-{}/{LARGE}", head.len() - 1)), head).await.with(200);
    let second = intent(&yard, wanted.clone()).await;
    assert_eq!(second["id"], first["id"]);
    assert_eq!(offset(&yard, &second).await, head.len().to_string());
    assert_eq!(
        upload(&yard, &first, None, b"x").await.with(404)["code"],
        "upload_not_found",
        "one address at a time"
    );
    for other in
        [json!({}), json!({ "expected_digest": digest(b"other") }), json!({ "app_version": "1.1.0" })]
    {
        assert_ne!(intent(&yard, other).await["id"], first["id"], "other bytes, or another place");
    }
    let rest = format!("bytes {}-{}/{LARGE}", head.len(), LARGE - 1);
    upload(&yard, &second, Some(&rest), tail).await.with(200);
    let last = intent(&yard, wanted.clone()).await;
    assert_eq!(last["id"], first["id"]);
    register(&yard, &bytes, json!({})).await.with(201);
    assert_ne!(intent(&yard, wanted).await["id"], first["id"], "what was taken is over");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_refused_where_it_is_too_large_other_than_said_late_or_nobodys() {
    let yard = Yard::new().await;
    let small = intent(&yard, json!({ "max_bytes": 10 })).await;
    for (range, sent) in
        [(None, vec![0; 11]), (Some("bytes 0-10/11"), vec![0; 11]), (Some("bytes 0-4/5"), vec![0; 9])]
    {
        let refused = upload(&yard, &small, range, &sent).await.with(413);
        assert_eq!(refused["code"], "payload_too_large", "{range:?}");
    }
    let expecting = intent(&yard, json!({ "expected_digest": digest(b"this") })).await;
    let refused = upload(&yard, &expecting, None, b"that").await.with(422);
    assert_eq!(
        (&refused["code"], &refused["details"]["found"]),
        (&json!("digest_mismatch"), &json!(digest(b"that")))
    );
    assert_eq!(upload(&yard, &expecting, None, b"this").await.with(200)["digest"], json!(digest(b"this")));
    let bad = upload(&yard, &expecting, Some("bytes 5-1/2"), b"x").await.with(400);
    assert_eq!(bad["code"], "invalid_request");

    yard.story.advance(Duration::from_secs(3601)).await;
    assert_eq!(upload(&yard, &expecting, None, b"this").await.with(404)["code"], "upload_not_found");
    let nobody = json!({ "upload_path": "/uploads/made-up" });
    assert_eq!(upload(&yard, &nobody, None, b"this").await.with(404)["code"], "upload_not_found");
    register(&yard, b"this", json!({})).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_room_is_said_to_be_and_nothing_is_taken() {
    let yard = Yard::new().await;
    let intent = intent(&yard, json!({})).await;
    let place: PathBuf = yard.blobs.0.join("incoming").join(intent["id"].as_str().unwrap());
    // A device on which every write fails for want of room.
    std::os::unix::fs::symlink("/dev/full", &place).unwrap();
    let refused = upload(&yard, &intent, Some("bytes 0-3/4"), b"this").await.with(503);
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!("service_unavailable"), &json!("The artifact store has no room left."))
    );
    std::fs::remove_file(&place).unwrap();
    upload(&yard, &intent, None, b"this").await.with(200);
    register(&yard, b"this", json!({})).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_told_once_and_a_blob_is_deleted_with_its_artifact() {
    let yard = Yard::new().await;
    let path = project("/app-artifacts/publish-intents");
    let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "weights", "artifact_kind": "blob" });
    let ask = || yard.http.send(Method::POST, &path, &[("x-idempotency-key", "once")], Some(wanted.clone()));
    let (first, again) = (ask().await.with(201), ask().await.with(201));
    assert_eq!((&again["id"], &again["upload_path"]), (&first["id"], &json!(null)));
    assert_eq!(again["secret_already_delivered"], true);
    upload(&yard, &first, None, b"this").await.with(200);
    let artifact = register(&yard, b"this", json!({})).await.with(201);
    assert_eq!(yard.kept_blobs(), 1);
    yard.retired(&artifact).await;
    assert_eq!(yard.kept_blobs(), 0);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_intent_does_not_orphan_the_upload_of_the_first() {
    let yard = Yard::new().await;
    let first = intent(&yard, json!({})).await;
    upload(&yard, &first, None, b"weights").await.with(200);
    let second = intent(&yard, json!({})).await;
    register(&yard, b"weights", json!({})).await.with(400);
    for stranger in [json!("01970000-0000-7000-8000-00000000000b"), json!("the first")] {
        register(&yard, b"weights", json!({ "intent_id": stranger })).await.with(400);
    }
    let refused = register(&yard, b"weights", json!({ "intent_id": second["id"] })).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/digest", "nothing was uploaded for it");
    register(&yard, b"weights", json!({ "intent_id": first["id"] })).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_may_name_the_places_that_blobs_come_from() {
    let yard = Yard::new().await;
    let intent = intent(&yard, json!({})).await;
    upload(&yard, &intent, None, b"weights").await.with(200);
    yard.policy("artifact.source_allowlist", json!(["artifact_store://projects/elsewhere"])).await;
    assert_eq!(register(&yard, b"weights", json!({})).await.with(403)["code"], "policy_denied");
    yard.policy("artifact.source_allowlist", json!(["gpuaas/apps/elsewhere"])).await;
    let artifact = register(&yard, b"weights", json!({})).await.with(201);
    yard.policy("artifact.source_allowlist", json!(["artifact_store://projects/elsewhere"])).await;
    let judged = yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
    assert_eq!(judged["trust_state"], "failed_verification");
    assert_eq!(judged["evidence"]["checks"][0]["code"], "source_not_allowed");
    yard.end().await;
}
