//! The forms of signatures, told by a library that shares no code with us: what it signs is trusted here, and what the
//! platform's own signer writes into a registry, and what these stories sign, is trusted there.

use std::io::Write;
use std::process::{Command, Stdio};

use clients::trust::{Provenance, SignerKey};
use serde_json::{Value, json};

use super::signer;
use super::yard::{OURS, Yard};
use crate::http::project;
use crate::support::image::{Image, digest};

const BUILDER: &str = "https://ci.example/builder";

fn oracle(arguments: &[&str]) -> Command {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut command = Command::new(format!("{root}/target/oracles/bin/python"));
    command.arg(format!("{root}/tests/artifacts/oracles/signatures.py")).args(arguments);
    command
}

/// A new key and what it signed of this image.
fn signed_elsewhere(image: &Image) -> Value {
    let said = oracle(&["sign", image.digest.as_str(), BUILDER]).output().expect("./dev test installs it");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).expect("JSON")
}

fn is_trusted_elsewhere(given: &Value) -> bool {
    let mut child = oracle(&["verify"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(given.to_string().as_bytes()).expect("it reads");
    child.wait().expect("it ends").success()
}

/// A yard that asks for signature and provenance, with the oracle's key.
async fn trusting(signed: &Value) -> Yard {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    yard.policy("artifact.provenance_required", json!(true)).await;
    let key = json!({ "name": "oracle", "public_key_pem": signed["public_key_pem"] });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    yard
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_independent_library_signs_is_trusted_here_in_both_forms() {
    for form in ["cosign_simple_signing", "sigstore_bundle"] {
        let image = Image::saying(form);
        let signed = signed_elsewhere(&image);
        let yard = trusting(&signed).await;
        let artifact = yard.publish(&image).await;
        let holder = yard.push(&image).await;
        let provenance = signed["provenance"].to_string();
        let tag = format!("sha256-{}.att", image.digest.hex());
        signer::beside(&holder, &tag, signer::ENVELOPE, provenance.as_bytes(), json!({})).await;
        if form == "sigstore_bundle" {
            signer::refer(&holder, &signed["bundle"].to_string(), &image.digest).await;
        } else {
            let (payload, tag) =
                (signed["payload"].as_str().unwrap(), format!("sha256-{}.sig", image.digest.hex()));
            let annotations = json!({ "dev.cosignproject.cosign/signature": signed["signature"] });
            signer::beside(&holder, &tag, signer::SIMPLE, payload.as_bytes(), annotations).await;
        }
        let judged = yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
        assert_eq!(judged["trust_state"], "verified", "{judged:#}");
        assert_eq!(judged["evidence"]["signatures"][0]["form"], form);
        assert_eq!(judged["evidence"]["provenance"]["builder_id"], BUILDER);
        yard.end().await;
    }
}

#[test]
fn what_these_stories_sign_is_trusted_by_an_independent_library() {
    let of = digest(b"an image");
    let payload = signer::payload(&of);
    let statement = signer::statement(&of, "https://slsa.dev/provenance/v1", &json!({}));
    let bundle: Value = serde_json::from_str(&signer::signature_bundle(1, &of)).unwrap();
    let mut given = json!({
        "public_key_pem": signer::public_key_pem(1), "payload": String::from_utf8(payload.clone()).unwrap(),
        "signature": signer::sign(1, &payload), "envelope": signer::envelope(1, &statement), "bundle": bundle,
    });
    assert!(is_trusted_elsewhere(&given));
    let material = given["bundle"]["verificationMaterial"].take();
    assert!(!is_trusted_elsewhere(&given), "a bundle without what it is verified by is none");
    given["bundle"]["verificationMaterial"] = material;
    given["public_key_pem"] = json!(signer::public_key_pem(2));
    assert!(!is_trusted_elsewhere(&given), "the oracle believes everything");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platforms_own_signer_leaves_in_a_registry_is_trusted_by_an_independent_library() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let holder = yard.push(&image).await;
    let key = SignerKey::from_pem(&signer::private_key_pem(1)).unwrap();
    clients::trust::sign(&holder, &image.digest, &key).await.unwrap();
    let statement = signer::statement(&image.digest, "https://slsa.dev/provenance/v1", &made_by(BUILDER));
    let provenance = Provenance::read(&statement, &image.digest, Some(&key)).unwrap();
    provenance.attach(&holder, &image.digest).await.unwrap();
    let (layer, payload) = beside(&yard, &image, "sig").await;
    assert_eq!(layer["mediaType"], signer::SIMPLE);
    let said: Value = serde_json::from_str(&payload).expect("a payload");
    assert_eq!(said["critical"]["image"]["docker-manifest-digest"], json!(image.digest));
    let (layer_of_envelope, envelope) = beside(&yard, &image, "att").await;
    assert_eq!(layer_of_envelope["mediaType"], signer::ENVELOPE);
    let mut given = json!({
        "public_key_pem": signer::public_key_pem(1), "payload": payload,
        "signature": layer["annotations"]["dev.cosignproject.cosign/signature"],
        "envelope": serde_json::from_str::<Value>(&envelope).expect("an envelope"),
    });
    assert!(is_trusted_elsewhere(&given));
    given["payload"] = json!(payload.replace(OURS, "gpuaas/apps/example/another"));
    assert!(!is_trusted_elsewhere(&given), "the oracle believes everything");
    yard.end().await;
}

fn made_by(builder: &str) -> Value {
    json!({ "buildDefinition": {}, "runDetails": { "builder": { "id": builder } } })
}

/// The one layer that lies beside an image under this tag, and its bytes.
async fn beside(yard: &Yard, image: &Image, tag: &str) -> (Value, String) {
    let registry = yard.registry.client().repository(OURS);
    let manifest = registry.manifest(&format!("sha256-{}.{tag}", image.digest.hex())).await.unwrap();
    let manifest: Value = serde_json::from_slice(&manifest.bytes).expect("a manifest");
    let layer = manifest["layers"][0].clone();
    let bytes = registry.blob(&layer["digest"].as_str().unwrap().parse().unwrap(), 4096).await.unwrap();
    (layer, String::from_utf8(bytes).unwrap())
}
