//! The trust corpus of blobs: whose signature counts for which bytes. OpenSSL, which shares no code with us, signs as
//! `cosign sign-blob` does, and judges what we sign.

use std::path::Path;
use std::process::Command;

use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clients::trust::SignerKey;
use engine::RunState;
use serde_json::{Value, json};

use super::signer::{self, BUNDLE};
use super::yard::Yard;
use crate::http::{Answer, project};
use crate::support::cluster::Folder;
use crate::support::image::digest;

const OURS: u8 = 1;
const STRANGER: u8 = 2;
const WEIGHTS: &[u8] = b"all the weights";
const OTHERS: &[u8] = b"other weights";

/// A yard where signatures are required, with one signing key.
async fn strict() -> Yard {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(OURS) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    yard
}

async fn registered(yard: &Yard, more: Value) -> Answer {
    let intent = yard.intent(json!({ "artifact_name": "weights", "artifact_kind": "blob" })).await;
    let upload = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    yard.http.bearing("").answer_to(upload.body(Body::from(WEIGHTS)).unwrap()).await.with(200);
    let mut wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "weights", "artifact_kind": "blob",
        "digest": digest(WEIGHTS),
    });
    for (name, value) in more.as_object().unwrap() {
        wanted[name] = value.clone();
    }
    yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await
}

/// The verdict, and every reason against it.
async fn verdict(yard: &Yard, artifact: &Value, body: Value) -> (Value, Vec<String>) {
    let judged = yard.act("publisher", artifact, "verify", body).await.with(200);
    let checks = judged["evidence"]["checks"].as_array().unwrap().iter();
    let failed = checks.filter(|check| check["passed"] == false);
    let codes = failed.map(|check| check["code"].as_str().unwrap().to_owned()).collect();
    (judged["trust_state"].clone(), codes)
}

fn bundle(of: &[u8], signature: &str) -> String {
    let message = digest(of).to_sha256();
    json!({
        "mediaType": BUNDLE, "verificationMaterial": { "publicKey": { "hint": "" } },
        "messageSignature": {
            "messageDigest": { "algorithm": "SHA2_256", "digest": BASE64_STANDARD.encode(message) },
            "signature": signature,
        },
    })
    .to_string()
}

fn tampered(signature: &str) -> String {
    let mut bytes = BASE64_STANDARD.decode(signature).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    BASE64_STANDARD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blobs_signature_counts_only_for_its_bytes_and_by_a_key_of_the_project() {
    let yard = strict().await;
    let artifact = registered(&yard, json!({})).await.with(201);
    let good = signer::sign(OURS, WEIGHTS);
    for (why, signature, code) in [
        ("none", json!(null), "unsigned"),
        ("by another key", json!(signer::sign(STRANGER, WEIGHTS)), "wrong_key"),
        ("of another blob", json!(signer::sign(OURS, OTHERS)), "wrong_key"),
        ("tampered", json!(tampered(&good)), "wrong_key"),
        ("no signature at all", json!("signed, sealed, delivered!"), "bad_signature"),
        ("in a bundle for another", json!(bundle(OTHERS, &good)), "signature_of_another"),
        (
            "of another, in a bundle that says it is not",
            json!(bundle(WEIGHTS, &signer::sign(OURS, OTHERS))),
            "wrong_key",
        ),
        ("in no bundle", json!("{}"), "bad_signature"),
    ] {
        let body = if signature.is_null() { json!({}) } else { json!({ "signature": signature }) };
        let expected = (json!("failed_verification"), vec![code.to_owned()]);
        assert_eq!(verdict(&yard, &artifact, body).await, expected, "{why}");
    }
    for signature in [bundle(WEIGHTS, &good), good.clone()] {
        let judged = verdict(&yard, &artifact, json!({ "signature": signature })).await;
        assert_eq!(judged, (json!("verified"), vec![]), "{signature}");
    }
    // It is kept: nobody needs to bring it again, and a channel that takes signed artifacts only takes this one.
    assert_eq!(verdict(&yard, &artifact, json!({})).await, (json!("verified"), vec![]));
    let evidence = &yard.shown(&artifact).await["evidence"]["signatures"][0];
    assert_eq!((&evidence["form"], &evidence["payload"]), (&json!("cosign_blob"), &json!(good)));
    yard.policy("artifact.channel_gates", json!({ "prod": { "signature": true } })).await;
    let accepted = yard.act("publisher", &artifact, "promote", json!({ "channel": "prod" })).await.with(202);
    let run = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_comes_with_the_registration_and_dies_with_the_bytes() {
    let yard = strict().await;
    let signature = signer::sign(OURS, WEIGHTS);
    let artifact = registered(&yard, json!({ "signature": signature })).await.with(201);
    assert_eq!(verdict(&yard, &artifact, json!({})).await.0, "verified");
    let folder =
        yard.blobs.0.join(artifact["source_uri"].as_str().unwrap().trim_start_matches("artifact_store://"));
    let kept = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut permissions = std::fs::metadata(&kept).unwrap().permissions();
    #[expect(clippy::permissions_set_readonly_false)]
    permissions.set_readonly(false);
    std::fs::set_permissions(&kept, permissions).unwrap();
    std::fs::write(&kept, OTHERS).unwrap();
    let judged = verdict(&yard, &artifact, json!({})).await;
    assert_eq!(judged, (json!("failed_verification"), vec!["digest_mismatch".to_owned()]));

    let image = json!({
        "app_slug": "hello", "app_version": "1.0.0", "digest": digest(b"an image"), "signature": signature,
    });
    let refused = yard.http.acting("publisher").post(&project("/app-artifacts"), image).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/signature");
    yard.end().await;
}

fn openssl(arguments: &[&str], folder: &Path) -> bool {
    let said = Command::new("openssl").args(arguments).current_dir(folder).output().expect("openssl runs");
    said.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_signs_what_we_accept_and_accepts_what_we_sign() {
    let (yard, folder) = (strict().await, Folder::new());
    let keep = |name: &str, bytes: &[u8]| std::fs::write(folder.0.join(name), bytes).unwrap();
    keep("key.pem", signer::private_key_pem(OURS).as_bytes());
    keep("public.pem", signer::public_key_pem(OURS).as_bytes());
    keep("stranger.pem", signer::public_key_pem(STRANGER).as_bytes());
    keep("weights", WEIGHTS);
    assert!(openssl(&["dgst", "-sha256", "-sign", "key.pem", "-out", "theirs.sig", "weights"], &folder.0));
    let theirs = BASE64_STANDARD.encode(std::fs::read(folder.0.join("theirs.sig")).unwrap());
    let artifact = registered(&yard, json!({ "signature": theirs })).await.with(201);
    assert_eq!(verdict(&yard, &artifact, json!({})).await, (json!("verified"), vec![]));

    let key = SignerKey::from_pem(&signer::private_key_pem(OURS)).unwrap();
    keep("ours.sig", &BASE64_STANDARD.decode(key.sign_blob(&digest(WEIGHTS)).unwrap()).unwrap());
    let verify = |key: &str| {
        openssl(&["dgst", "-sha256", "-verify", key, "-signature", "ours.sig", "weights"], &folder.0)
    };
    assert!(verify("public.pem"));
    assert!(!verify("stranger.pem"));
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blobs_provenance_comes_with_it_and_must_be_of_its_bytes_by_a_builder_that_may() {
    const BUILDER: &str = "https://ci.example/builder";
    let yard = strict().await;
    yard.policy("artifact.signature_required", json!(false)).await;
    yard.policy("artifact.provenance_required", json!(true)).await;
    yard.policy("artifact.source_allowlist", json!([BUILDER])).await;
    let built = |seed: u8, of: &[u8], by: &str| {
        let predicate = json!({ "buildDefinition": {}, "runDetails": { "builder": { "id": by } } });
        let statement = signer::statement(&digest(of), "https://slsa.dev/provenance/v1", &predicate);
        signer::envelope(seed, &statement)
    };
    let artifact = registered(&yard, json!({})).await.with(201);
    for (why, provenance, code) in [
        ("none", json!(null), "no_provenance"),
        ("by another builder", built(OURS, WEIGHTS, "https://evil.example"), "builder_not_allowed"),
        ("by another key", built(STRANGER, WEIGHTS, BUILDER), "wrong_key"),
        ("of another file", built(OURS, OTHERS, BUILDER), "attestation_of_another"),
        (
            "of a signature",
            signer::envelope(
                OURS,
                &signer::statement(&digest(WEIGHTS), "https://sigstore.dev/cosign/sign/v1", &json!({})),
            ),
            "no_provenance",
        ),
        ("no envelope", json!("built at home"), "bad_attestation"),
    ] {
        let body =
            if provenance.is_null() { json!({}) } else { json!({ "provenance": provenance.to_string() }) };
        let expected = (json!("failed_verification"), vec![code.to_owned()]);
        assert_eq!(verdict(&yard, &artifact, body).await, expected, "{why}");
    }
    let good = built(OURS, WEIGHTS, BUILDER);
    let bundle = json!({ "mediaType": BUNDLE, "dsseEnvelope": good }).to_string();
    for provenance in [bundle, good.to_string()] {
        let judged = verdict(&yard, &artifact, json!({ "provenance": provenance })).await;
        assert_eq!(judged, (json!("verified"), vec![]));
    }
    assert_eq!(verdict(&yard, &artifact, json!({})).await.0, "verified", "it is kept");
    let evidence = &yard.shown(&artifact).await["evidence"]["provenance"];
    assert_eq!((&evidence["builder_id"], &evidence["manifest_digest"]), (&json!(BUILDER), &json!(null)));
    yard.end().await;
}
