//! Signing as cosign does. Of an image: a payload that names the digest and its signature, under a tag beside the image. Of
//! a file: a signature that whoever registers it brings along.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::Digest;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{DerSignature, Signature, SigningKey};
use p256::pkcs8::DecodePrivateKey;
use serde_json::{Value, json};

use super::simple_signing::{KIND, PAYLOAD_TYPE, SIGNATURE};
use crate::registry::{RegistryFault, Repository};

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &[u8] = b"{}";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no P-256 private key in PKCS#8 PEM form without a passphrase (-----BEGIN PRIVATE KEY-----)")]
pub struct SignerKeyFault;

/// The private half of a signing key. It stays with whoever signs.
pub struct SignerKey(SigningKey);

impl SignerKey {
    pub fn from_pem(pem: &str) -> Result<SignerKey, SignerKeyFault> {
        SigningKey::from_pkcs8_pem(pem.trim()).map(SignerKey).map_err(|_| SignerKeyFault)
    }

    /// Of a file that has this digest, as `cosign sign-blob` writes it.
    pub fn sign_blob(&self, digest: &Digest) -> Result<String, SignerKeyFault> {
        let signature: Signature = self.0.sign_prehash(&digest.to_sha256()).map_err(|_| SignerKeyFault)?;
        Ok(BASE64_STANDARD.encode(signature.to_der().as_bytes()))
    }

    pub(super) fn sign(&self, message: &[u8]) -> String {
        let signature: DerSignature = self.0.sign(message);
        BASE64_STANDARD.encode(signature.as_bytes())
    }
}

impl std::fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignerKey").finish_non_exhaustive()
    }
}

/// Puts the signature beside the image. The same key and image give the same signature, so doing it again changes nothing.
pub async fn sign(repository: &Repository, digest: &Digest, key: &SignerKey) -> Result<(), RegistryFault> {
    let payload = payload(&repository.name, digest);
    let config = config(repository).await?;
    let mut layer = held(&payload, PAYLOAD_TYPE, &repository.push_bytes(&payload).await?);
    layer["annotations"] = json!({ SIGNATURE: key.sign(&payload) });
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    let tag = format!("sha256-{}.sig", digest.hex());
    repository.push_manifest(&tag, MANIFEST, manifest.to_string().as_bytes()).await?;
    Ok(())
}

/// What a manifest must name and nobody reads.
pub(super) async fn config(repository: &Repository) -> Result<Value, RegistryFault> {
    Ok(held(EMPTY, "application/vnd.oci.image.config.v1+json", &repository.push_bytes(EMPTY).await?))
}

pub(super) fn held(bytes: &[u8], kind: &str, digest: &Digest) -> Value {
    json!({ "mediaType": kind, "digest": digest, "size": bytes.len() })
}

fn payload(reference: &str, digest: &Digest) -> Vec<u8> {
    let critical = json!({
        "identity": { "docker-reference": reference }, "image": { "docker-manifest-digest": digest }, "type": KIND,
    });
    json!({ "critical": critical, "optional": null }).to_string().into_bytes()
}
