//! Blobs in a bucket. `SeaweedFS`, which shares no code with us, judges the addresses that the platform signs.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clients::blobs::{BlobFault, BlobName, Blobs, S3, S3Settings, SignedUpload};
use domain::Secret;
use futures::TryStreamExt;
use reqwest::Client;
use serde_json::json;
use uuid::Uuid;

use super::yard::Yard;
use crate::http::project;
use crate::support::cluster::Folder;
use crate::support::image::digest;

const ID: &str = "platform";
const SECRET: &str = "hunter2";
const HOUR: Duration = Duration::from_secs(3600);

/// A server with one bucket; it ends with the story.
struct Server {
    child: Child,
    _folder: Folder,
    endpoint: String,
}

impl Server {
    async fn start() -> Server {
        let (folder, port) = (Folder::new(), free_ports());
        let log = File::create(folder.0.join("log")).unwrap();
        let child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/target/oracles/bin/weed"))
            .args(["mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false"])
            .args(["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-dir={}", folder.0.display()))
            .args([format!("-master.port={port}"), format!("-volume.port={}", port + 1)])
            .args([format!("-filer.port={}", port + 2), format!("-s3.port={}", port + 3)])
            .arg(format!("-admin.port={}", port + 4))
            .env("AWS_ACCESS_KEY_ID", ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("./dev test installs it");
        let server = Server { child, _folder: folder, endpoint: format!("http://127.0.0.1:{}", port + 3) };
        server.make_bucket().await;
        server
    }

    /// As an operator would, once the server answers.
    async fn make_bucket(&self) {
        for _ in 0..600 {
            let made = Command::new("curl")
                .args(["--silent", "--fail", "--request", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3"])
                .args(["--user", &format!("{ID}:{SECRET}"), &format!("{}/blobs", self.endpoint)])
                .status();
            if made.expect("curl runs").success() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no bucket");
    }

    fn connect(&self, secret: &str) -> S3 {
        S3::connect(&S3Settings {
            endpoint: self.endpoint.clone(),
            region: "us-east-1".to_owned(),
            bucket: "blobs".to_owned(),
            access_key_id: ID.to_owned(),
            secret_access_key: Secret::new(secret.to_owned()),
        })
        .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Five in a row, and those that lie ten thousand above them: below the ports that connections are given. Stories of other
/// processes look elsewhere first.
fn free_ports() -> u16 {
    let first = 12_000 + u16::try_from(std::process::id() % 1_000).unwrap_or_default() * 8;
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let row = |first: &u16| (0..5).all(|at| free(first + at) && free(first + at + 10_000));
    (first..22_000).step_by(8).find(row).expect("free ports")
}

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
    let server = Server::start().await;
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
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(upload(&short, None, b"this").await, 403, "it has expired");
    let stranger = server.connect("wrong").sign(name().intent, None, HOUR).await.unwrap();
    assert_eq!(upload(&stranger, None, b"this").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_accepts_by_the_wrong_digest_takes_nothing_from_whoever_has_the_right_one() {
    let server = Server::start().await;
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
    let server = Server::start().await;
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
