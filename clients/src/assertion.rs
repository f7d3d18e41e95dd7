//! Assertions: how the holder of a registered key proves itself (RFC 7523). The platform knows only the public key;
//! what arrives is a JWT of at most a minute, meant for us, with an id that the caller must let count only once.

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::de::IgnoredAny;
use serde_json::json;
use uuid::Uuid;

use crate::fault::TokenFault;
use crate::jwt::{self, VerifyingKey};
use crate::key_set;
use crate::signing::{KeyFault, SigningKey};
use crate::terms::{SKEW, Terms, accepted};

/// The longest an assertion may live.
pub const LONGEST: TimeDelta = TimeDelta::seconds(60);

/// A key that may be registered: Ed25519, P-256, or RSA of at least 2048 bits.
#[derive(Debug, Clone)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_pem(pem: &str) -> Result<PublicKey, KeyFault> {
        PublicKey::read(pem.trim()).ok_or_else(|| {
            let kinds = "it is not a public key in PEM form, of Ed25519, P-256 or RSA from 2048 bits";
            KeyFault::Unusable(kinds.to_owned())
        })
    }

    fn read(pem: &str) -> Option<PublicKey> {
        if !pem.starts_with("-----BEGIN PUBLIC KEY-----") {
            return None;
        }
        let kinds = [
            (DecodingKey::from_ed_pem(pem.as_bytes()), Algorithm::EdDSA),
            (DecodingKey::from_ec_pem(pem.as_bytes()), Algorithm::ES256),
            (DecodingKey::from_rsa_pem(pem.as_bytes()), Algorithm::RS256),
        ];
        let (key, algorithm) = kinds.into_iter().find_map(|(key, algorithm)| Some((key.ok()?, algorithm)))?;
        let jwk = Jwk::from_decoding_key(&key, Some(algorithm)).ok()?;
        key_set::usable(&jwk).map(PublicKey)
    }
}

/// What an assertion must say to be accepted.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Who asserts: the service account or node, as both `iss` and `sub`.
    pub subject: &'a str,
    /// Whom it is meant for: the platform's issuer URL.
    pub audience: &'a str,
    pub key_id: &'a str,
    pub now: DateTime<Utc>,
}

/// An assertion that holds, unless its id was used before: that, the caller must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    pub jti: String,
    /// The id must be remembered until then; clock skew is included.
    pub replayable_until: DateTime<Utc>,
}

pub fn verify(assertion: &str, key: &PublicKey, expected: &Expected<'_>) -> Result<Assertion, TokenFault> {
    let header = jwt::header(assertion)?;
    if header.kid.as_deref().is_some_and(|id| id != expected.key_id) {
        return Err(TokenFault::Invalid("it names another key"));
    }
    let audiences = &[expected.audience.to_owned()];
    let terms = Terms { issuer: expected.subject, audiences, now: expected.now };
    let (claims, IgnoredAny) = accepted(assertion, &header, &key.0, &terms)?;
    if claims.sub != expected.subject {
        return Err(TokenFault::Invalid("it is about someone else"));
    }
    // Bounded by what it says and by our clock, so that neither a long life nor a late birth stretches it.
    let short = claims.lifetime_seconds().is_some_and(|seconds| seconds <= LONGEST.as_seconds_f64());
    if !short || claims.expires_at() > expected.now + LONGEST + SKEW {
        return Err(TokenFault::Invalid("it lives longer than 60 seconds, or does not say since when"));
    }
    match claims.jti {
        Some(ref jti) if (1..=128).contains(&jti.len()) => {
            Ok(Assertion { jti: jti.clone(), replayable_until: claims.expires_at() + SKEW })
        }
        _ => Err(TokenFault::Invalid("it has no id of 1 to 128 bytes")),
    }
}

/// What the holder of a key sends.
pub fn sign(key: &SigningKey, subject: &str, audience: &str, now: DateTime<Utc>) -> Result<String, KeyFault> {
    key.sign(&json!({
        "iss": subject,
        "sub": subject,
        "aud": audience,
        "jti": Uuid::now_v7(),
        "iat": now.timestamp(),
        "exp": (now + LONGEST).timestamp(),
    }))
}

/// Whether this private key is the other half of the registered one. Only keys that the platform made can be shown
/// this way; they are all Ed25519.
pub fn possesses(private_key_pem: &str, public_key_pem: &str) -> Result<(), TokenFault> {
    let not_ours = TokenFault::Invalid("the private key is not the registered one");
    let key = SigningKey::from_pem(private_key_pem).map_err(|_| not_ours.clone())?;
    let public = key.public_key_pem().map_err(|_| not_ours.clone())?;
    if public.trim() == public_key_pem.trim() { Ok(()) } else { Err(not_ours) }
}

#[cfg(test)]
mod tests;
