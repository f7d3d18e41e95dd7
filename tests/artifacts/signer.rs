//! Somebody who signs images as cosign does: a payload and its signature under a tag beside the image.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clients::registry::Repository;
use domain::Digest;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};
use serde_json::{Value, json};

use crate::support::image::{INDEX, MANIFEST, digest};

const EMPTY: &[u8] = b"{}";
pub const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32].into()).unwrap()
}

/// The same seed is the same key.
pub fn public_key_pem(seed: u8) -> String {
    key(seed).verifying_key().to_public_key_pem(LineEnding::LF).unwrap()
}

pub fn private_key_pem(seed: u8) -> String {
    key(seed).to_pkcs8_pem(LineEnding::LF).unwrap().to_string()
}

pub fn sign(seed: u8, message: &[u8]) -> String {
    let signature: DerSignature = key(seed).sign(message);
    BASE64_STANDARD.encode(signature.as_bytes())
}

pub fn payload(of: &Digest) -> Vec<u8> {
    let critical = json!({
        "identity": { "docker-reference": "gpuaas/apps/example/hello" },
        "image": { "docker-manifest-digest": of },
        "type": "cosign container image signature",
    });
    json!({ "critical": critical, "optional": null }).to_string().into_bytes()
}

pub fn statement(of: &Digest, predicate_type: &str, predicate: &Value) -> Vec<u8> {
    json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{ "name": "hello", "digest": { "sha256": of.hex() } }],
        "predicateType": predicate_type, "predicate": predicate,
    })
    .to_string()
    .into_bytes()
}

pub fn envelope(seed: u8, payload: &[u8]) -> Value {
    let kind = "application/vnd.in-toto+json";
    let message = [format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(), payload].concat();
    let signature = json!({ "keyid": "", "sig": sign(seed, &message) });
    json!({ "payloadType": kind, "payload": BASE64_STANDARD.encode(payload), "signatures": [signature] })
}

/// One layer under a tag, as cosign keeps what belongs to an image.
pub async fn beside(repository: &Repository, tag: &str, media_type: &str, layer: &[u8], annotations: Value) {
    for blob in [EMPTY, layer] {
        repository.push_bytes(blob).await.unwrap();
    }
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(EMPTY), "size": EMPTY.len() },
        "layers": [{ "mediaType": media_type, "digest": digest(layer), "size": layer.len(), "annotations": annotations }],
    });
    repository.push_manifest(tag, MANIFEST, manifest.to_string().as_bytes()).await.unwrap();
}

/// `signed` is what the payload names, `under` the image whose tag it lies under.
pub async fn cosign(repository: &Repository, seed: u8, signed: &Digest, under: &Digest) {
    let payload = payload(signed);
    let annotations = json!({ "dev.cosignproject.cosign/signature": sign(seed, &payload) });
    let tag = format!("sha256-{}.sig", under.hex());
    beside(repository, &tag, SIMPLE, &payload, annotations).await;
}

pub async fn attest(repository: &Repository, seed: u8, of: &Digest, builder: &str) {
    let predicate = json!({ "buildDefinition": {}, "runDetails": { "builder": { "id": builder } } });
    let envelope = envelope(seed, &statement(of, "https://slsa.dev/provenance/v1", &predicate));
    let tag = format!("sha256-{}.att", of.hex());
    let layer = envelope.to_string();
    beside(repository, &tag, ENVELOPE, layer.as_bytes(), json!({})).await;
}

/// cosign's newer form, listed under the fallback tag, as a registry without a list of referrers needs it.
pub async fn bundle(repository: &Repository, seed: u8, of: &Digest) {
    refer(repository, &signature_bundle(seed, of), of).await;
}

/// What a bundle of a signature says.
pub fn signature_bundle(seed: u8, of: &Digest) -> String {
    let statement = statement(of, "https://sigstore.dev/cosign/sign/v1", &json!({}));
    let material = json!({ "publicKey": { "hint": "release" }, "tlogEntries": [] });
    json!({ "mediaType": BUNDLE, "verificationMaterial": material, "dsseEnvelope": envelope(seed, &statement) })
        .to_string()
}

/// The manifest that holds a bundle and names the image as its subject.
pub fn referring(bundle: &str, of: &Digest) -> String {
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(EMPTY), "size": EMPTY.len() },
        "layers": [{ "mediaType": BUNDLE, "digest": digest(bundle.as_bytes()), "size": bundle.len() }],
        "subject": { "mediaType": MANIFEST, "digest": of, "size": 1 },
    })
    .to_string()
}

/// A bundle in a manifest that names the image as its subject.
pub async fn refer(repository: &Repository, bundle: &str, of: &Digest) {
    for blob in [EMPTY, bundle.as_bytes()] {
        repository.push_bytes(blob).await.unwrap();
    }
    let manifest = referring(bundle, of);
    let held = digest(manifest.as_bytes());
    repository.push_manifest(held.as_str(), MANIFEST, manifest.as_bytes()).await.unwrap();
    let index = json!({
        "schemaVersion": 2, "mediaType": INDEX,
        "manifests": [{ "mediaType": MANIFEST, "artifactType": BUNDLE, "digest": held, "size": manifest.len() }],
    });
    let tag = format!("sha256-{}", of.hex());
    repository.push_manifest(&tag, INDEX, index.to_string().as_bytes()).await.unwrap();
}
