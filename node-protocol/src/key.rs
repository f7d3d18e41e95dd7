//! Ed25519 keys of nodes and of task signers. A key is named by its thumbprint (RFC 7638), as the platform's other keys
//! are, so a name can never point at another key.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::Secret;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rand::RngCore;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("the text is not an Ed25519 private key in PKCS#8 PEM form")]
    NotAPrivateKey,
    #[error("the text is not an Ed25519 public key in PEM form")]
    NotAPublicKey,
    #[error("the key cannot be written as PEM")]
    Unwritable,
}

#[derive(Clone)]
pub struct Key {
    signing: SigningKey,
}

impl Key {
    pub fn generate() -> Key {
        let mut seed = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(seed.as_mut());
        Key { signing: SigningKey::from_bytes(&seed) }
    }

    pub fn from_pem(pem: &str) -> Result<Key, KeyFault> {
        let signing = SigningKey::from_pkcs8_pem(pem.trim()).map_err(|_| KeyFault::NotAPrivateKey)?;
        Ok(Key { signing })
    }

    pub fn id(&self) -> String {
        self.public().id()
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.signing.verifying_key())
    }

    /// Without the public half: the older form of PKCS#8, which every tool reads.
    pub fn private_key_pem(&self) -> Result<Secret<String>, KeyFault> {
        let seed_only = KeypairBytes { secret_key: self.signing.to_bytes(), public_key: None };
        let pem = seed_only.to_pkcs8_pem(LineEnding::LF).map_err(|_| KeyFault::Unwritable)?;
        Ok(Secret::new((*pem).clone()))
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.signing.sign(bytes).to_bytes())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("id", &self.id()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_pem(pem: &str) -> Result<PublicKey, KeyFault> {
        VerifyingKey::from_public_key_pem(pem.trim()).map(PublicKey).map_err(|_| KeyFault::NotAPublicKey)
    }

    pub fn to_pem(&self) -> Result<String, KeyFault> {
        self.0.to_public_key_pem(LineEnding::LF).map_err(|_| KeyFault::Unwritable)
    }

    pub fn id(&self) -> String {
        let x = BASE64_URL_SAFE_NO_PAD.encode(self.0.as_bytes());
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(jwk))
    }

    /// Strictly: no small-order keys, no second form of the same signature.
    pub(crate) fn verifies(&self, bytes: &[u8], signature: &str) -> bool {
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok();
        let signature = signature.and_then(|bytes| Signature::from_slice(&bytes).ok());
        signature.is_some_and(|signature| self.0.verify_strict(bytes, &signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_being_written_down() {
        let key = Key::generate();
        let again = Key::from_pem(key.private_key_pem().unwrap().expose()).unwrap();
        assert_eq!(again.id(), key.id());
        assert_eq!(PublicKey::from_pem(&key.public().to_pem().unwrap()).unwrap(), key.public());
        assert!(Key::from_pem("nonsense").is_err());
        assert!(PublicKey::from_pem(key.private_key_pem().unwrap().expose()).is_err());
    }

    /// The key of RFC 8037, appendix A, and the thumbprint that appendix A.3 gives it.
    #[test]
    fn the_id_is_the_thumbprint_of_the_standard() {
        let x = BASE64_URL_SAFE_NO_PAD.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let key = PublicKey(VerifyingKey::from_bytes(&x.try_into().unwrap()).unwrap());
        assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn the_private_half_is_never_shown() {
        let key = Key::generate();
        let shown = format!("{key:?}");
        assert!(shown.contains(&key.id()) && !shown.contains("PRIVATE"), "{shown}");
    }
}
