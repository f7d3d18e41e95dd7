//! DSSE envelopes around in-toto statements: provenance (SLSA), and cosign's newer signatures. The signed bytes are the
//! envelope's type and payload with their lengths, so that neither can be taken for the other.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use domain::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Named, Wrong};

pub(super) const IN_TOTO: &str = "application/vnd.in-toto+json";
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// What cosign writes when it signs, rather than describes, an image.
const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub payload_type: String,
    /// Base64.
    pub payload: String,
    pub signatures: Vec<EnvelopeSignature>,
}

impl Envelope {
    /// An envelope stands alone, or inside a bundle under `dsseEnvelope`.
    pub(super) fn read(bytes: &[u8]) -> Option<Envelope> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Bundle {
            dsse_envelope: Envelope,
        }
        let alone = serde_json::from_slice::<Envelope>(bytes).ok();
        alone.or_else(|| Some(serde_json::from_slice::<Bundle>(bytes).ok()?.dsse_envelope))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnvelopeSignature {
    pub sig: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    pub predicate_type: String,
    #[serde(default)]
    predicate: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct Subject {
    digest: std::collections::BTreeMap<String, String>,
}

impl Statement {
    pub(super) fn is_signature(&self) -> bool {
        self.predicate_type == COSIGN_SIGN
    }

    /// Who built it: where SLSA 1.0 says it, or where 0.2 did. `None` for what is no provenance.
    pub(super) fn builder(&self) -> Option<&str> {
        let slsa = self.predicate_type.starts_with("https://slsa.dev/provenance/");
        let places = ["/runDetails/builder/id", "/builder/id"];
        let named = places.iter().find_map(|place| self.predicate.pointer(place)).and_then(Value::as_str);
        named.filter(|_| slsa)
    }

    pub(super) fn is_about(&self, subject: &Digest) -> bool {
        self.subject.iter().any(|one| one.digest.get("sha256").is_some_and(|hex| hex == subject.hex()))
    }
}

/// What is signed: `DSSEv1 <length> <type> <length> <payload>`.
pub(super) fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The statement and the key that vouches for it, if it is about this subject.
pub(super) fn signed_statement(
    envelope: &Envelope,
    subject: &Digest,
    keys: &[Named],
) -> Result<(Uuid, Statement), Wrong> {
    let unreadable = |what: &str| ("bad_attestation", format!("{what} of an attestation cannot be read"));
    if envelope.payload_type != IN_TOTO {
        return Err(("bad_attestation", "an envelope does not hold an in-toto statement".to_owned()));
    }
    let payload = decode(&envelope.payload).ok_or_else(|| unreadable("the payload"))?;
    let message = pre_authentication(&envelope.payload_type, &payload);
    let signatures: Vec<Vec<u8>> = envelope.signatures.iter().filter_map(|one| decode(&one.sig)).collect();
    let vouches = |named: &&Named| signatures.iter().any(|signature| named.key.verifies(&message, signature));
    let Some(signer) = keys.iter().find(vouches) else {
        return Err((
            "wrong_key",
            format!("an attestation beside {subject} fits no key that may vouch for it"),
        ));
    };
    let statement: Statement = serde_json::from_slice(&payload).map_err(|_| unreadable("the statement"))?;
    if !STATEMENTS.contains(&statement.kind.as_str()) {
        return Err(("bad_attestation", "an attestation is no in-toto statement".to_owned()));
    }
    if !statement.is_about(subject) {
        return Err((
            "attestation_of_another",
            format!("an attestation beside {subject} is of something else"),
        ));
    }
    Ok((signer.id, statement))
}

/// DSSE allows either alphabet.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text).or_else(|_| BASE64_URL_SAFE.decode(text)).ok()
}
