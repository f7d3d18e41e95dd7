//! The forms of signatures, told by a signer that is not ours wherever one is to be had.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePublicKey, LineEnding};
use serde_json::{Value, json};
use uuid::Uuid;

use super::simple_signing::Candidate;
use super::*;

fn signer(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32].into()).unwrap()
}

fn named(seed: u8) -> Named {
    let pem = signer(seed).verifying_key().to_public_key_pem(LineEnding::LF).unwrap();
    Named { id: Uuid::from_u128(u128::from(seed)), key: PublicKey::from_pem(&pem).unwrap() }
}

fn digest(byte: u8) -> Digest {
    Digest::from_sha256([byte; 32])
}

fn sign(seed: u8, message: &[u8]) -> String {
    let signature: DerSignature = signer(seed).sign(message);
    BASE64_STANDARD.encode(signature.as_bytes())
}

fn payload(of: &Digest, kind: &str) -> Vec<u8> {
    let image = json!({ "docker-manifest-digest": of });
    let critical = json!({ "identity": { "docker-reference": "a/b" }, "image": image, "type": kind });
    json!({ "critical": critical, "optional": null }).to_string().into_bytes()
}

const IMAGE_SIGNATURE: &str = "cosign container image signature";

fn simple(seed: u8, payload: Vec<u8>) -> Candidate {
    let signature = sign(seed, &payload);
    Candidate { manifest: digest(9), payload, signature }
}

#[test]
fn a_simple_signature_counts_for_its_own_digest_by_a_key_of_the_project() {
    let ours = digest(1);
    let good = simple(1, payload(&ours, IMAGE_SIGNATURE));
    assert_eq!(simple_signing::verify(&good, &ours, &[named(2), named(1)]), Ok(Uuid::from_u128(1)));
    let code =
        |candidate: &Candidate, keys: &[Named]| simple_signing::verify(candidate, &ours, keys).unwrap_err().0;
    assert_eq!(code(&good, &[named(2)]), "wrong_key");
    assert_eq!(code(&good, &[]), "wrong_key");
    assert_eq!(code(&simple(1, payload(&digest(2), IMAGE_SIGNATURE)), &[named(1)]), "signature_of_another");
    assert_eq!(code(&simple(1, payload(&ours, "something else")), &[named(1)]), "bad_signature");
    let mut tampered = simple(1, payload(&digest(2), IMAGE_SIGNATURE));
    tampered.payload = payload(&ours, IMAGE_SIGNATURE);
    assert_eq!(code(&tampered, &[named(1)]), "wrong_key");
    let garbled = Candidate { signature: "not base64!".to_owned(), ..good };
    assert_eq!(code(&garbled, &[named(1)]), "bad_signature");
}

fn statement(of: &Digest, predicate_type: &str, predicate: &Value) -> Vec<u8> {
    json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{ "name": "a/b", "digest": { "sha256": of.hex() } }],
        "predicateType": predicate_type, "predicate": predicate,
    })
    .to_string()
    .into_bytes()
}

fn envelope(seed: u8, payload: &[u8]) -> Envelope {
    let payload_type = "application/vnd.in-toto+json";
    let sig = sign(seed, &dsse::pre_authentication(payload_type, payload));
    let envelope = json!({
        "payloadType": payload_type, "payload": BASE64_STANDARD.encode(payload), "signatures": [{ "keyid": "", "sig": sig }],
    });
    serde_json::from_value(envelope).unwrap()
}

#[test]
fn a_builder_is_read_where_either_version_of_slsa_puts_it_and_nowhere_else() {
    let ours = digest(1);
    let one = json!({ "runDetails": { "builder": { "id": "https://ci.example" } } });
    let older = json!({ "builder": { "id": "https://ci.example" } });
    for (kind, predicate, expected) in [
        ("https://slsa.dev/provenance/v1", &one, Some("https://ci.example")),
        ("https://slsa.dev/provenance/v0.2", &older, Some("https://ci.example")),
        ("https://example.com/anything", &one, None),
        ("https://slsa.dev/provenance/v1", &json!({}), None),
    ] {
        let envelope = envelope(1, &statement(&ours, kind, predicate));
        let (key, statement) = dsse::signed_statement(&envelope, &ours, &[named(1)]).unwrap();
        assert_eq!((key, statement.builder()), (Uuid::from_u128(1), expected), "{kind}");
    }
}

#[test]
fn an_attestation_counts_for_its_own_subject_by_a_key_of_the_project() {
    let ours = digest(1);
    let good = envelope(1, &statement(&ours, "https://slsa.dev/provenance/v1", &json!({})));
    let code =
        |envelope: &Envelope, keys: &[Named]| dsse::signed_statement(envelope, &ours, keys).unwrap_err().0;
    assert_eq!(code(&good, &[named(2)]), "wrong_key");
    let of_another = envelope(1, &statement(&digest(2), "https://slsa.dev/provenance/v1", &json!({})));
    assert_eq!(code(&of_another, &[named(1)]), "attestation_of_another");
    let mut retyped = good.clone();
    retyped.payload_type = "text/plain".to_owned();
    assert_eq!(code(&retyped, &[named(1)]), "bad_attestation");
    let mut tampered = good;
    tampered.payload = of_another.payload;
    assert_eq!(code(&tampered, &[named(1)]), "wrong_key");
}

/// The example of the DSSE specification (protocol.md, "Test Vectors").
#[test]
fn what_is_signed_is_what_the_specification_says() {
    let encoded = dsse::pre_authentication("http://example.com/HelloWorld", b"hello world");
    assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

/// The signature of the DSSE specification's example, by its own key (protocol.md, "Test Vectors"), written as DER.
#[test]
fn the_signature_of_the_specification_is_good() {
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ805D3eqNZywjCI19lInBJOp7YMr
CrzAH3CVTAOQ0jgMeCvVTiaRJaRPRDOv8UMs6U4SvKc6pnrIDOoSYI3fdA==
-----END PUBLIC KEY-----";
    const SIGNATURE: &str =
        "MEQCIANyarEBrVbCdjtsaqyOSHJ14qeRk6CdxfhZ2fjvPEo7AiBR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==";
    let key = PublicKey::from_pem(KEY).unwrap();
    let signature = BASE64_STANDARD.decode(SIGNATURE).unwrap();
    let message = |words: &[u8]| dsse::pre_authentication("http://example.com/HelloWorld", words);
    assert!(key.verifies(&message(b"hello world"), &signature));
    assert!(!key.verifies(&message(b"hello World"), &signature));
}

/// An image signature in cosign's form, from the tests of the sigstore project's own library for Rust.
#[test]
fn a_signature_of_the_sigstore_project_is_good() {
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENptdY/l3nB0yqkXLBWkZWQwo6+cu
OSWS1X9vPavpiQOoTTGC0xX57OojUadxF1cdQmrsiReWg2Wn4FneJfa8xw==
-----END PUBLIC KEY-----";
    const PAYLOAD: &str = r#"{"critical":{"identity":{"docker-reference":"registry-testing.svc.lan/busybox"},"image":{"docker-manifest-digest":"sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b"},"type":"cosign container image signature"},"optional":null}"#;
    const SIGNATURE: &str =
        "MEUCIQD6q/COgzOyW0YH1Dk+CCYSt4uAhm3FDHUwvPI55zwnlwIgE0ZK58ZOWpZw8YVmBapJhBqCfdPekIknimuO0xH8Jh8=";
    let of: Digest =
        "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b".parse().unwrap();
    let theirs = Named { id: Uuid::from_u128(7), key: PublicKey::from_pem(KEY).unwrap() };
    let candidate =
        Candidate { manifest: digest(9), payload: PAYLOAD.into(), signature: SIGNATURE.to_owned() };
    assert_eq!(simple_signing::verify(&candidate, &of, &[named(1), theirs]), Ok(Uuid::from_u128(7)));
}
