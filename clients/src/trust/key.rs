//! A public key that signatures are checked with: ECDSA on P-256, as `cosign generate-key-pair` makes them.

use domain::Digest;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::{Signature, VerifyingKey};
use p256::pkcs8::{DecodePublicKey, EncodePublicKey, LineEnding};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a P-256 public key in PEM form (-----BEGIN PUBLIC KEY-----)")]
pub struct KeyFault;

#[derive(Debug, Clone)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_pem(pem: &str) -> Result<PublicKey, KeyFault> {
        VerifyingKey::from_public_key_pem(pem.trim()).map(PublicKey).map_err(|_| KeyFault)
    }

    /// The one form in which it is kept.
    pub fn to_pem(&self) -> Result<String, KeyFault> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|_| KeyFault)
    }

    /// `signature` is DER, over the SHA-256 of the message.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_der(signature).is_ok_and(|signature| self.0.verify(message, &signature).is_ok())
    }

    /// The same of a message that somebody else has hashed.
    pub(super) fn verifies_digest(&self, of: &Digest, signature: &[u8]) -> bool {
        let signature = Signature::from_der(signature);
        signature.is_ok_and(|signature| self.0.verify_prehash(&of.to_sha256(), &signature).is_ok())
    }
}
