//! The signature of a file, as `cosign sign-blob` makes it: over the file's bytes, in DER and base64, alone or in a sigstore
//! bundle. What is signed is the hash of the bytes, so whoever hashed them has all that a check needs.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::Digest;
use serde::Deserialize;
use uuid::Uuid;

use super::{Named, Wrong};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    message_signature: MessageSignature,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    #[serde(default)]
    message_digest: Option<MessageDigest>,
    signature: String,
}

#[derive(Deserialize)]
struct MessageDigest {
    digest: String,
}

/// The key that vouches for exactly these bytes.
pub(super) fn verify(text: &str, subject: &Digest, keys: &[Named]) -> Result<Uuid, Wrong> {
    let bad = |why: &str| ("bad_signature", format!("the signature of {subject} {why}"));
    let text = text.trim();
    let signature = if text.starts_with('{') {
        let Bundle { message_signature } = serde_json::from_str(text)
            .map_err(|_| bad("is no bundle with the signature of a message in it"))?;
        // A hint, which only tells what went wrong: what counts is what the signature fits.
        if let Some(named) = message_signature.message_digest
            && BASE64_STANDARD.decode(&named.digest).is_ok_and(|named| named != subject.to_sha256())
        {
            return Err(("signature_of_another", format!("the signature of {subject} is of another file")));
        }
        message_signature.signature
    } else {
        text.to_owned()
    };
    let signature = BASE64_STANDARD.decode(&signature).map_err(|_| bad("is not base64"))?;
    let signer = keys.iter().find(|named| named.key.verifies_digest(subject, &signature));
    let wrong = || {
        let why = format!("the signature of {subject} is of another file, or fits no key that may sign it");
        ("wrong_key", why)
    };
    signer.map(|named| named.id).ok_or_else(wrong)
}
