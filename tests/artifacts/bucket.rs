//! Blobs in a bucket. `SeaweedFS`, which shares no code with us, judges the addresses that the platform signs.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use clients::blobs::{BlobFault, BlobName, Blobs, SignedUpload};
use futures::TryStreamExt;
use reqwest::Client;
use serde_json::json;
use tokio::net::TcpListener;
use uuid::Uuid;

use super::yard::Yard;
use crate::http::project;
use crate::support::bucket::{Bucket, SECRET, connect_to};
use crate::support::image::digest;
use crate::support::slow::short_or_slow;

const HOUR: Duration = Duration::from_secs(3600);

/// Uploads as the answer says, but for a header that may be left out.
async fn upload(signed: &SignedUpload, without: Option<&str>, bytes: &'static [u8]) -> u16 {
    let mut request = Client::new().put(&signed.url).body(bytes);
    for (name, value) in signed.headers.iter().filter(|(name, _)| Some(name.as_str()) != without) {
        request = request.header(name, value);
    }
    request.send().await.unwrap().status().as_u16()
}

fn name() -> BlobName {
    BlobName { key: "projects/p/artifacts/hello/1.0.0/weights".to_owned(), intent: Uuid::now_v7() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_address_takes_one_upload_of_the_right_bytes() {
    let server = Bucket::start().await;
    let s3 = server.connect(SECRET);
    let blobs = Blobs::S3(s3.clone());
    let (this, that) = (digest(b"this"), digest(b"that"));

    let open = name();
    assert_eq!(blobs.accept(&open, &this, 10).await, Err(BlobFault::Absent));
    let signed = s3.sign(open.intent, None, HOUR).await.unwrap();
    assert_eq!(
        upload(&signed, Some("if-none-match"), b"this").await,
        403,
        "the header belongs to the signature"
    );
    assert_eq!(upload(&signed, None, b"this").await, 200);
    assert_eq!(upload(&signed, None, b"that").await, 412, "an address is good for one upload");
    let refused = blobs.accept(&open, &that, 10).await.unwrap_err();
    assert_eq!(refused, BlobFault::Mismatch { asked: that.clone(), found: this.clone() });
    assert_eq!(blobs.accept(&open, &this, 10).await, Ok(4));
    assert_eq!(blobs.accept(&open, &this, 10).await, Ok(4), "taken before is well");
    assert_eq!(upload(&signed, None, b"that").await, 200, "nothing lies there any more");
    assert_eq!(blobs.accept(&open, &that, 10).await.unwrap_err(), refused, "what was taken is what counts");
    assert_eq!(blobs.check(&open, &this).await, Ok(4));
    let read: Vec<_> = blobs.read(&open).await.unwrap().try_collect().await.unwrap();
    assert_eq!(read.concat(), b"this", "nobody has an address for what was taken");
    blobs.delete(&open).await.unwrap();
    assert!(blobs.read(&open).await.is_err());

    let expecting = name();
    let signed = s3.sign(expecting.intent, Some(&this), HOUR).await.unwrap();
    assert_eq!(upload(&signed, None, b"that").await, 400, "the store itself compares");
    assert_eq!(upload(&signed, Some("x-amz-checksum-sha256"), b"that").await, 403);
    assert_eq!(upload(&signed, None, b"this").await, 200);
    assert_eq!(blobs.accept(&expecting, &this, 3).await, Err(BlobFault::TooLarge { most: 3 }));

    let elsewhere = s3.sign(name().intent, None, HOUR).await.unwrap();
    let forged = SignedUpload { url: elsewhere.url.replace("incoming", "projects"), ..elsewhere };
    assert_eq!(upload(&forged, None, b"this").await, 403);
    let short = s3.sign(name().intent, None, Duration::from_secs(1)).await.unwrap();
    let expires = async {
        while upload(&short, None, b"this").await != 403 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), expires).await.expect("it expires");
    let stranger = server.connect("wrong").sign(name().intent, None, HOUR).await.unwrap();
    assert_eq!(upload(&stranger, None, b"this").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_accepts_by_the_wrong_digest_takes_nothing_from_whoever_has_the_right_one() {
    let server = Bucket::start().await;
    let s3 = server.connect(SECRET);
    let blobs = Blobs::S3(s3.clone());
    let (this, that) = (digest(b"this"), digest(b"that"));
    for _ in 0..10 {
        let name = name();
        let signed = s3.sign(name.intent, None, HOUR).await.unwrap();
        assert_eq!(upload(&signed, None, b"this").await, 200);
        let (wrong, right) = tokio::join!(blobs.accept(&name, &that, 10), blobs.accept(&name, &this, 10));
        assert_eq!(right, Ok(4));
        assert_eq!(wrong, Err(BlobFault::Mismatch { asked: that.clone(), found: this.clone() }));
        assert_eq!(blobs.check(&name, &this).await, Ok(4), "what was accepted is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_goes_to_the_bucket_is_registered_from_there_and_goes_when_it_is_retired() {
    let server = Bucket::start().await;
    let s3 = server.connect(SECRET);
    let yard = Yard::keeping_in(Blobs::S3(s3.clone())).await;
    let wanted =
        json!({ "artifact_name": "weights", "artifact_kind": "blob", "expected_digest": digest(b"this") });
    let intent = yard.intent(wanted).await;
    let signed = SignedUpload {
        url: intent["upload_path"].as_str().unwrap().to_owned(),
        headers: serde_json::from_value(intent["upload_headers"].clone()).unwrap(),
    };
    let slot = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "weights", "artifact_kind": "blob",
        "digest": digest(b"this"),
    });
    let publisher = yard.http.acting("publisher");
    let early = publisher.post(&project("/app-artifacts"), slot.clone()).await.with(400);
    assert_eq!(early["details"]["errors"][0]["pointer"], "/digest");
    assert_eq!(upload(&signed, None, b"that").await, 400, "the store itself compares");
    assert_eq!(upload(&signed, None, b"this").await, 200);
    let artifact = publisher.post(&project("/app-artifacts"), slot).await.with(201);
    assert_eq!(artifact["size_bytes"], 4);
    let judged = yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
    assert_eq!(judged["trust_state"], "verified", "{judged:#}");
    let key = artifact["source_uri"].as_str().unwrap().trim_start_matches("artifact_store://").to_owned();
    let name = BlobName { key, intent: intent["id"].as_str().unwrap().parse().unwrap() };
    let blobs = Blobs::S3(s3);
    assert_eq!(blobs.check(&name, &digest(b"this")).await, Ok(4));
    yard.retired(&artifact).await;
    assert_eq!(blobs.check(&name, &digest(b"this")).await, Err(BlobFault::Absent));
    yard.end().await;
}

/// A store that copies as slowly as a large blob makes it, and gives `this`.
async fn slow_store(copying: Duration) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serve = move |method: Method, headers: HeaderMap, uri: Uri| async move {
        let kept = uri.path().starts_with("/blobs/projects");
        match method {
            Method::HEAD if kept => StatusCode::NOT_FOUND.into_response(),
            Method::PUT if headers.contains_key("x-amz-copy-source") => {
                tokio::time::sleep(copying).await;
                let copied = "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>";
                copied.into_response()
            }
            // Objects are deleted by a list of them.
            Method::POST => "<DeleteResult><Deleted><Key>k</Key></Deleted></DeleteResult>".into_response(),
            _ => {
                ([("last-modified", "Tue, 17 Nov 2026 00:00:00 GMT"), ("etag", "e")], "this").into_response()
            }
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(serve)).await });
    endpoint
}

/// The longest that a client of its own accord would wait for a whole request is half a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_takes_the_store_its_time_is_waited_for() {
    let copying = Duration::from_secs(short_or_slow(1, 35));
    let blobs = Blobs::S3(connect_to(&slow_store(copying).await, SECRET));
    assert_eq!(blobs.accept(&name(), &digest(b"this"), 10).await, Ok(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_offered_no_more_than_it_takes_in_one_piece() {
    let yard = Yard::keeping_in(Blobs::S3(connect_to("http://127.0.0.1:9", SECRET))).await;
    let path = project("/app-artifacts/publish-intents");
    let mut wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "weights", "artifact_kind": "blob",
        "max_bytes": 5_i64 << 30,
    });
    yard.http.acting("publisher").post(&path, wanted.clone()).await.with(201);
    wanted["max_bytes"] = json!((5_i64 << 30) + 1);
    let refused = yard.http.acting("publisher").post(&path, wanted).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/max_bytes", "{refused:#}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_acceptance_that_was_cut_short_left_goes_with_the_next_and_with_the_blob() {
    let server = Bucket::start().await;
    let s3 = server.connect(SECRET);
    let blobs = Blobs::S3(s3.clone());
    let (first, second) = (name(), name());
    let left = |name: &BlobName| format!("accepting/{}/{}", name.intent, Uuid::nil());
    for name in [&first, &second] {
        let signed = s3.sign(name.intent, None, HOUR).await.unwrap();
        assert_eq!(upload(&signed, None, b"this").await, 200);
        server.leave(&left(name));
    }
    assert_eq!(blobs.accept(&first, &digest(b"this"), 10).await, Ok(4));
    assert!(!server.has(&left(&first)), "the acceptance that came through clears away after all");
    assert!(server.has(&left(&second)), "another intent's is not touched");
    blobs.delete(&second).await.unwrap();
    assert!(!server.has(&left(&second)), "what nobody registered leaves nothing");
}
