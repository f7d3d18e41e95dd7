//! Provenance on its way beside what it is about: an envelope that somebody signed, or a statement that a key of ours signs as it
//! stands. Under the tag where cosign keeps attestations, beside those that lie there.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::Digest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::SignerKey;
use super::collect::ENVELOPE;
use super::dsse::{self, Envelope, IN_TOTO, Statement};
use super::sign::{MANIFEST, config, held};
use crate::registry::{RegistryFault, Repository};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProvenanceFault {
    #[error("is neither an in-toto statement nor a DSSE envelope or a bundle that holds one")]
    Unreadable,
    #[error("is a statement that nobody signed: name a key")]
    Unsigned,
    #[error("is no provenance: its predicate is not SLSA's, or names no builder")]
    OfAnotherKind,
    #[error("is about something else: no subject has the digest of what is published")]
    OfAnother,
}

/// A signed statement, as it is attached.
#[derive(Debug)]
pub struct Provenance {
    pub envelope: String,
}

impl Provenance {
    /// What is signed already stays as it is, whoever signed it: that is judged where it is verified.
    pub fn read(bytes: &[u8], of: &Digest, key: Option<&SignerKey>) -> Result<Provenance, ProvenanceFault> {
        if let Some(envelope) = Envelope::read(bytes) {
            let payload = dsse::decode(&envelope.payload).ok_or(ProvenanceFault::Unreadable)?;
            check(&payload, of)?;
            return Ok(Provenance { envelope: json!(envelope).to_string() });
        }
        check(bytes, of)?;
        let key = key.ok_or(ProvenanceFault::Unsigned)?;
        let signature = key.sign(&dsse::pre_authentication(IN_TOTO, bytes));
        let envelope = json!({
            "payloadType": IN_TOTO, "payload": BASE64_STANDARD.encode(bytes), "signatures": [{ "keyid": "", "sig": signature }],
        });
        Ok(Provenance { envelope: envelope.to_string() })
    }

    /// Doing it again changes nothing.
    pub async fn attach(&self, repository: &Repository, digest: &Digest) -> Result<(), RegistryFault> {
        #[derive(Default, Deserialize)]
        struct Beside {
            layers: Vec<Value>,
        }
        let tag = format!("sha256-{}.att", digest.hex());
        let there = repository.find_manifest(&tag).await?;
        let there = there.and_then(|manifest| serde_json::from_slice::<Beside>(&manifest.bytes).ok());
        let mut layers = there.unwrap_or_default().layers;
        let bytes = self.envelope.as_bytes();
        let layer = held(bytes, ENVELOPE, &repository.push_bytes(bytes).await?);
        if layers.iter().any(|there| there["digest"] == layer["digest"]) {
            return Ok(());
        }
        layers.push(layer);
        let config = config(repository).await?;
        let manifest =
            json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers });
        repository.push_manifest(&tag, MANIFEST, manifest.to_string().as_bytes()).await?;
        Ok(())
    }
}

fn check(statement: &[u8], of: &Digest) -> Result<(), ProvenanceFault> {
    let statement: Statement = serde_json::from_slice(statement).map_err(|_| ProvenanceFault::Unreadable)?;
    statement.builder().ok_or(ProvenanceFault::OfAnotherKind)?;
    if statement.is_about(of) { Ok(()) } else { Err(ProvenanceFault::OfAnother) }
}
