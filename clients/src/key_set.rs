//! The public keys of an issuer, as it publishes them (RFC 7517). Keys we cannot or must not use — shared secrets,
//! encryption keys, short RSA moduli, curves we do not know — are left out, so nothing can be verified with them.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;

use crate::jwt::VerifyingKey;

const SHORTEST_RSA_BYTES: usize = 2048 / 8;
/// More keys than any issuer has; each may be tried for a token that names none.
const MOST: usize = 64;

#[derive(Debug, Clone, Default)]
pub(crate) struct KeySet(Vec<(Option<String>, VerifyingKey)>);

impl KeySet {
    /// Read key by key: an issuer may publish one of a kind we have never heard of beside those we know.
    pub(crate) fn from_json(json: &[u8]) -> Result<KeySet, serde_json::Error> {
        #[derive(Deserialize)]
        struct Published {
            keys: Vec<Value>,
        }
        let published: Published = serde_json::from_slice(json)?;
        let jwks = published.keys.into_iter().take(MOST);
        Ok(KeySet::of(jwks.filter_map(|key| serde_json::from_value(key).ok())))
    }

    pub(crate) fn of(jwks: impl Iterator<Item = Jwk>) -> KeySet {
        KeySet(jwks.filter_map(|jwk| Some((jwk.common.key_id.clone(), usable(&jwk)?))).collect())
    }

    /// The keys that may have signed a token with this header.
    pub(crate) fn candidates(&self, header: &Header) -> Vec<&VerifyingKey> {
        let may_be = |id: &Option<String>, key: &VerifyingKey| {
            (header.kid.is_none() || *id == header.kid) && key.algorithms.contains(&header.alg)
        };
        self.0.iter().filter(|(id, key)| may_be(id, key)).map(|(_, key)| key).collect()
    }
}

/// A key for signatures of a kind and a size we accept.
pub(crate) fn usable(jwk: &Jwk) -> Option<VerifyingKey> {
    if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return None;
    }
    let length = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_or(0, |bytes| bytes.len());
    let fitting = match &jwk.algorithm {
        AlgorithmParameters::OctetKeyPair(key)
            if key.curve == EllipticCurve::Ed25519 && length(&key.x) == 32 =>
        {
            vec![Algorithm::EdDSA]
        }
        AlgorithmParameters::EllipticCurve(key) if (length(&key.x), length(&key.y)) == (32, 32) => {
            (key.curve == EllipticCurve::P256).then_some(Algorithm::ES256).into_iter().collect()
        }
        AlgorithmParameters::EllipticCurve(key) if (length(&key.x), length(&key.y)) == (48, 48) => {
            (key.curve == EllipticCurve::P384).then_some(Algorithm::ES384).into_iter().collect()
        }
        AlgorithmParameters::RSA(key) if length(&key.n) >= SHORTEST_RSA_BYTES => {
            use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
            vec![RS256, RS384, RS512, PS256, PS384, PS512]
        }
        _ => return None,
    };
    let algorithms: Vec<Algorithm> = match jwk.common.key_algorithm {
        // The issuer may bind a key to one algorithm; it cannot bind it to one that does not fit.
        Some(said) => {
            fitting.into_iter().filter(|algorithm| KeyAlgorithm::from(*algorithm) == said).collect()
        }
        None => fitting,
    };
    let key = DecodingKey::from_jwk(jwk).ok()?;
    (!algorithms.is_empty()).then_some(VerifyingKey { key, algorithms })
}
