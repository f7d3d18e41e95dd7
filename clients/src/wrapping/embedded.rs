//! The embedded way. A secret is encrypted with a key made from its token (HKDF-SHA256), then sealed with the platform's
//! sealing key and bound to its row. The token itself is told and forgotten; the row knows its hash.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use domain::Secret;
use hkdf::Hkdf;
use rand::RngCore;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::seal::{SealFault, Sealer};

const INFO: &[u8] = b"gpuaas/wrap/v1";
const NONCE_BYTES: usize = 24;
/// As Vault's: a receiver treats it as opaque.
const PREFIX: &str = "s.";

#[derive(Debug, Clone)]
pub struct Wrapper {
    sealer: Sealer,
}

/// What to tell, and what to keep.
pub struct Wrapped {
    pub token: Secret<String>,
    pub token_hash: Vec<u8>,
    pub sealed: String,
}

/// What a row is found by.
pub fn token_hash(token: &str) -> Vec<u8> {
    Sha256::digest(token).to_vec()
}

impl Wrapper {
    pub fn new(sealer: Sealer) -> Wrapper {
        Wrapper { sealer }
    }

    /// `purpose` is readable and cannot be changed.
    pub fn wrap(&self, secret: &Secret<Vec<u8>>, purpose: &str) -> Result<Wrapped, SealFault> {
        let mut random = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(random.as_mut());
        let token = Secret::new(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random.as_ref())));
        let token_hash = token_hash(token.expose());
        let mut inner = vec![0; NONCE_BYTES];
        rand::rng().fill_bytes(&mut inner);
        let nonce = XNonce::try_from(inner.as_slice()).map_err(|_| SealFault::Unsealable)?;
        let payload = Payload { msg: secret.expose(), aad: purpose.as_bytes() };
        inner.extend(cipher(token.expose())?.encrypt(&nonce, payload).map_err(|_| SealFault::Unsealable)?);
        let sealed = self.sealer.seal(&Secret::new(inner), &row(&token_hash, purpose))?;
        Ok(Wrapped { token, token_hash, sealed })
    }

    pub fn unwrap(&self, token: &str, sealed: &str, purpose: &str) -> Result<Secret<Vec<u8>>, SealFault> {
        let inner = self.sealer.open(sealed, &row(&token_hash(token), purpose))?;
        let (nonce, ciphertext) =
            inner.expose().split_at_checked(NONCE_BYTES).ok_or(SealFault::Unreadable)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| SealFault::Unreadable)?;
        let payload = Payload { msg: ciphertext, aad: purpose.as_bytes() };
        cipher(token)?.decrypt(&nonce, payload).map(Secret::new).map_err(|_| SealFault::Tampered)
    }
}

fn cipher(token: &str) -> Result<XChaCha20Poly1305, SealFault> {
    let mut key = Zeroizing::new([0; 32]);
    let derived = Hkdf::<Sha256>::new(None, token.as_bytes()).expand(INFO, key.as_mut());
    derived.map_err(|_| SealFault::Unsealable)?;
    XChaCha20Poly1305::new_from_slice(key.as_ref()).map_err(|_| SealFault::Unsealable)
}

fn row(token_hash: &[u8], purpose: &str) -> String {
    format!("wrapped_secrets/{}/{purpose}", BASE64_URL_SAFE_NO_PAD.encode(token_hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapper() -> Wrapper {
        Wrapper::new(Sealer::from_lines(Sealer::generate_line("a").expose()).unwrap())
    }

    fn secret() -> Secret<Vec<u8>> {
        Secret::new(b"hunter2".to_vec())
    }

    #[test]
    fn the_token_opens_its_own_row_for_its_own_purpose() {
        let wrapper = wrapper();
        let wrapped = wrapper.wrap(&secret(), "publish").unwrap();
        let (token, other) = (wrapped.token.expose(), wrapper.wrap(&secret(), "publish").unwrap());
        assert_eq!(wrapped.token_hash, token_hash(token));
        assert_eq!(wrapper.unwrap(token, &wrapped.sealed, "publish").unwrap().expose(), b"hunter2");
        assert_eq!(wrapper.unwrap(token, &wrapped.sealed, "pull").unwrap_err(), SealFault::Tampered);
        assert_eq!(wrapper.unwrap(token, &other.sealed, "publish").unwrap_err(), SealFault::Tampered);
        assert_eq!(
            wrapper.unwrap(other.token.expose(), &wrapped.sealed, "publish").unwrap_err(),
            SealFault::Tampered
        );
    }

    /// Whoever has the table and the sealing key has this much, and still not the secret.
    #[test]
    fn the_sealing_key_alone_does_not_open_a_row() {
        let wrapper = wrapper();
        let wrapped = wrapper.wrap(&secret(), "publish").unwrap();
        let inner = wrapper.sealer.open(&wrapped.sealed, &row(&wrapped.token_hash, "publish")).unwrap();
        assert!(!inner.expose().windows(7).any(|part| part == b"hunter2"));
        assert!(!wrapped.sealed.contains(wrapped.token.expose().as_str()));
    }
}
