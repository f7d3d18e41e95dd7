//! Ed25519 keys that sign tokens: those of the platform, of service accounts and of the built-in issuer.
//!
//! A key is named by its thumbprint (RFC 7638), so a name can never point at another key. A set of keys signs with
//! its first and believes all: a new key is added last everywhere, then moved to the front, then the old one goes.

use domain::Secret;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use jsonwebtoken::jwk::{Jwk, JwkSet, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use rand::RngCore;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::fault::TokenFault;
use crate::jwt::VerifyingKey;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("the text is not an Ed25519 private key in PKCS#8 PEM form (-----BEGIN PRIVATE KEY-----)")]
    NotAPrivateKey,
    #[error("there is no key")]
    Empty,
    #[error("the key cannot be used: {0}")]
    Unusable(String),
}

#[derive(Clone)]
pub struct SigningKey {
    id: String,
    signing: ed25519_dalek::SigningKey,
    encoding: EncodingKey,
    jwk: Jwk,
}

impl SigningKey {
    pub fn generate() -> Result<SigningKey, KeyFault> {
        let mut seed = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(seed.as_mut());
        SigningKey::of(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    pub fn from_pem(pem: &str) -> Result<SigningKey, KeyFault> {
        let signing = ed25519_dalek::SigningKey::from_pkcs8_pem(pem.trim());
        SigningKey::of(signing.map_err(|_| KeyFault::NotAPrivateKey)?)
    }

    fn of(signing: ed25519_dalek::SigningKey) -> Result<SigningKey, KeyFault> {
        let unusable = |error: &dyn std::fmt::Display| KeyFault::Unusable(error.to_string());
        let der = seed_only(&signing).to_pkcs8_der().map_err(|error| unusable(&error))?;
        let encoding = EncodingKey::from_ed_der(der.as_bytes());
        let mut jwk =
            Jwk::from_encoding_key(&encoding, Algorithm::EdDSA).map_err(|error| unusable(&error))?;
        let id = jwk.thumbprint(ThumbprintHash::SHA256).map_err(|error| unusable(&error))?;
        jwk.common.key_id = Some(id.clone());
        Ok(SigningKey { id, signing, encoding, jwk })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn private_key_pem(&self) -> Result<Secret<String>, KeyFault> {
        let pem = seed_only(&self.signing).to_pkcs8_pem(LineEnding::LF);
        pem.map(|pem| Secret::new((*pem).clone())).map_err(|error| KeyFault::Unusable(error.to_string()))
    }

    pub fn public_key_pem(&self) -> Result<String, KeyFault> {
        let pem = self.signing.verifying_key().to_public_key_pem(LineEnding::LF);
        pem.map_err(|error| KeyFault::Unusable(error.to_string()))
    }

    /// A JWT with these claims, naming this key.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyFault> {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::EdDSA) };
        jsonwebtoken::encode(&header, claims, &self.encoding)
            .map_err(|error| KeyFault::Unusable(error.to_string()))
    }

    pub(crate) fn verifying(&self) -> VerifyingKey {
        let key = DecodingKey::from_ed_der(self.signing.verifying_key().as_bytes());
        VerifyingKey { key, algorithms: vec![Algorithm::EdDSA] }
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Without the public half: the older form of PKCS#8, which every tool reads.
fn seed_only(signing: &ed25519_dalek::SigningKey) -> KeypairBytes {
    KeypairBytes { secret_key: signing.to_bytes(), public_key: None }
}

/// One or more keys; the first signs.
#[derive(Debug, Clone)]
pub struct SigningKeys(Vec<SigningKey>);

impl SigningKeys {
    pub fn one(key: SigningKey) -> SigningKeys {
        SigningKeys(vec![key])
    }

    /// The keys of a file with one PEM block after another.
    pub fn from_pem(text: &str) -> Result<SigningKeys, KeyFault> {
        const END: &str = "-----END PRIVATE KEY-----";
        let blocks = text.split_inclusive(END).map(str::trim).filter(|block| !block.is_empty());
        let keys: Vec<SigningKey> = blocks.map(SigningKey::from_pem).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyFault::Empty) } else { Ok(SigningKeys(keys)) }
    }

    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyFault> {
        self.0.first().ok_or(KeyFault::Empty)?.sign(claims)
    }

    /// The public halves, as an issuer publishes them.
    pub fn public(&self) -> JwkSet {
        JwkSet { keys: self.0.iter().map(|key| key.jwk.clone()).collect() }
    }

    pub(crate) fn named(&self, id: Option<&str>) -> Result<VerifyingKey, TokenFault> {
        let named = self.0.iter().find(|key| Some(key.id()) == id);
        named.map(SigningKey::verifying).ok_or(TokenFault::Invalid("it is signed by an unknown key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_pem_form_with_the_same_name() {
        let key = SigningKey::generate().unwrap();
        let pem = key.private_key_pem().unwrap();
        assert!(pem.expose().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        let again = SigningKey::from_pem(pem.expose()).unwrap();
        assert_eq!(again.id(), key.id());
        assert_eq!(again.public_key_pem().unwrap(), key.public_key_pem().unwrap());
    }

    #[test]
    fn a_key_never_shows_its_private_half() {
        let key = SigningKey::generate().unwrap();
        let published = serde_json::to_value(SigningKeys::one(key.clone()).public()).unwrap();
        assert!(published["keys"][0]["x"].is_string());
        assert_eq!(published["keys"][0].get("d"), None);
        assert_eq!(format!("{key:?}"), format!("SigningKey {{ id: {:?}, .. }}", key.id()));
    }

    #[test]
    fn a_file_of_several_keys_is_read_in_order_and_anything_else_is_refused() {
        let (new, old) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let file = format!(
            "{}\n{}",
            new.private_key_pem().unwrap().expose(),
            old.private_key_pem().unwrap().expose()
        );
        let keys = SigningKeys::from_pem(&file).unwrap();
        assert_eq!(keys.0.iter().map(SigningKey::id).collect::<Vec<_>>(), [new.id(), old.id()]);
        assert_eq!(SigningKeys::from_pem("\n").unwrap_err(), KeyFault::Empty);
        assert_eq!(SigningKeys::from_pem("hunter2").unwrap_err(), KeyFault::NotAPrivateKey);
    }
}
