//! Tokens that only somebody with bad intentions makes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::realm::{AUDIENCE, ISSUER, Realm};

pub fn unsigned(claims: &Value) -> String {
    format!("{}.{}.", part(&json!({ "alg": "none", "typ": "JWT" })), part(claims))
}

/// Key confusion: the public key, which everybody knows, used as the secret of HMAC.
pub fn confused(realm: &Realm, claims: &Value) -> String {
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": realm.issuer.id() });
    let signed = format!("{}.{}", part(&header), part(claims));
    let key = realm.issuer.public_key_pem().unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac_sha256(key.as_bytes(), signed.as_bytes())))
}

/// The signature of one token under the claims of another.
pub fn tampered(token: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ops", "exp": 4_000_000_000_u32 });
    format!("{}.{}.{}", parts[0], part(&claims), parts[2])
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// RFC 2104.
fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

#[test]
fn the_forgers_hmac_is_a_real_one() {
    let tag = hmac_sha256(b"key", b"The quick brown fox jumps over the lazy dog");
    assert_eq!(tag[..4], [0xf7, 0xbc, 0x83, 0xf4]);
}
