//! cosign's older form: a payload that names the digest, and a signature over the payload's exact bytes in an annotation.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::Digest;
use serde::Deserialize;
use uuid::Uuid;

use super::{Named, Wrong};

pub(super) const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(super) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
pub(super) const KIND: &str = "cosign container image signature";

/// A payload and its signature, as they lie in the registry.
pub(super) struct Candidate {
    /// The digest of the manifest that holds them.
    pub(super) manifest: Digest,
    pub(super) payload: Vec<u8>,
    /// Base64, of DER.
    pub(super) signature: String,
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The key that vouches for exactly this subject. The signature comes first: nothing is read that nobody signed.
pub(super) fn verify(candidate: &Candidate, subject: &Digest, keys: &[Named]) -> Result<Uuid, Wrong> {
    let Ok(signature) = BASE64_STANDARD.decode(&candidate.signature) else {
        return Err(("bad_signature", "a signature is not base64".to_owned()));
    };
    let signer = keys.iter().find(|named| named.key.verifies(&candidate.payload, &signature));
    let Some(signer) = signer else {
        return Err(("wrong_key", format!("a signature of {subject} fits no key that may sign it")));
    };
    let Ok(payload) = serde_json::from_slice::<Payload>(&candidate.payload) else {
        return Err(("bad_signature", "a signed payload cannot be read".to_owned()));
    };
    if payload.critical.kind != KIND {
        return Err(("bad_signature", "a signed payload is no image signature".to_owned()));
    }
    if payload.critical.image.digest != subject.as_str() {
        return Err(("signature_of_another", format!("a signature beside {subject} is of another image")));
    }
    Ok(signer.id)
}
