//! How a node proves itself: a JWT of a minute that it signs with its own key (RFC 7523), good once.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use serde_json::json;
use uuid::Uuid;

use crate::key::Key;

const LIFETIME: TimeDelta = TimeDelta::seconds(60);

pub fn assert_identity(key: &Key, node_id: Uuid, audience: &str, now: DateTime<Utc>) -> Secret<String> {
    let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": key.id() });
    let claims = json!({
        "iss": node_id,
        "sub": node_id,
        "aud": audience,
        "jti": Uuid::now_v7(),
        "iat": now.timestamp(),
        "exp": (now + LIFETIME).timestamp(),
    });
    let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(signed.as_bytes());
    Secret::new(format!("{signed}.{signature}"))
}
