//! Who this instance is to the platform: an account of its own with a key, handed over in the environment. The key is
//! turned into short tokens; nothing of it is ever printed.

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::call::post;

pub(crate) struct Identity {
    pub(crate) base_url: String,
    pub(crate) instance_id: String,
    account_id: String,
    key_id: String,
    private_key_pem: String,
    /// Whom assertions are meant for; without it the key itself is the proof.
    audience: Option<String>,
}

/// A token, the project it is for, and until when it is used.
pub(crate) struct Token {
    pub(crate) bearer: String,
    pub(crate) project_id: String,
    fresh_until: Instant,
}

impl Token {
    pub(crate) fn is_fresh(&self) -> bool {
        Instant::now() < self.fresh_until
    }
}

impl Identity {
    /// `None` outside of the platform.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Identity> {
        Some(Identity {
            base_url: variable("GPUAAS_BASE_URL")?,
            instance_id: variable("GPUAAS_APP_INSTANCE_ID")?,
            account_id: variable("GPUAAS_SERVICE_ACCOUNT_ID")?,
            key_id: variable("GPUAAS_KEY_ID")?,
            private_key_pem: variable("GPUAAS_PRIVATE_KEY")?,
            audience: variable("GPUAAS_ISSUER"),
        })
    }

    pub(crate) fn token(&self) -> io::Result<Token> {
        let mut proof = json!({ "service_account_id": self.account_id, "key_id": self.key_id });
        match &self.audience {
            Some(audience) => proof["assertion"] = json!(self.assertion(audience)?),
            None => proof["private_key_pem"] = json!(self.private_key_pem),
        }
        let (status, answer) = post(&self.base_url, "/api/v1/auth/service-account/token", None, &proof)?;
        let bearer = answer["access_token"].as_str().filter(|_| status == 200).map(str::to_owned);
        let bearer = bearer.ok_or_else(|| io::Error::other(format!("no token: status {status}")))?;
        let project_id = project_of(&bearer).ok_or_else(|| io::Error::other("a token without a project"))?;
        let seconds = answer["expires_in"].as_u64().unwrap_or(60);
        let fresh_until = Instant::now() + Duration::from_secs(seconds.saturating_sub(60).max(10));
        Ok(Token { bearer, project_id, fresh_until })
    }

    /// A JWT of a minute that only the holder of the key can make (RFC 7523).
    fn assertion(&self, audience: &str) -> io::Result<String> {
        let key = SigningKey::from_pkcs8_pem(self.private_key_pem.trim())
            .map_err(|_| io::Error::other("GPUAAS_PRIVATE_KEY is not an Ed25519 key"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_secs();
        let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": self.key_id });
        let claims = json!({
            "iss": self.account_id, "sub": self.account_id, "aud": audience,
            "jti": uuid::Uuid::now_v7(), "iat": now, "exp": now + 60,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).to_bytes());
        Ok(format!("{signed}.{signature}"))
    }
}

/// The platform's tokens say for which project they are.
fn project_of(bearer: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(bearer.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["project_id"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::Verifier;
    use ed25519_dalek::pkcs8::EncodePrivateKey;
    use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;

    use super::*;

    #[test]
    fn an_identity_needs_every_variable_but_the_issuer() {
        let all = |name: &str| Some(name.to_owned());
        assert!(Identity::from_environment(all).is_some());
        assert!(Identity::from_environment(|name| all(name).filter(|_| name != "GPUAAS_ISSUER")).is_some());
        for missing in ["GPUAAS_BASE_URL", "GPUAAS_APP_INSTANCE_ID", "GPUAAS_KEY_ID", "GPUAAS_PRIVATE_KEY"] {
            assert!(Identity::from_environment(|name| all(name).filter(|_| name != missing)).is_none());
        }
    }

    #[test]
    fn an_assertion_is_signed_by_the_key_and_lives_a_minute() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let pem = key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string();
        let variable =
            |name: &str| Some(if name == "GPUAAS_PRIVATE_KEY" { pem.clone() } else { "x".to_owned() });
        let identity = Identity::from_environment(variable).unwrap();
        let assertion = identity.assertion("https://issuer.test").unwrap();
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let signature = ed25519_dalek::Signature::from_slice(&signature).unwrap();
        assert!(key.verifying_key().verify(signed.as_bytes(), &signature).is_ok());
        let claims = URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 60);
    }

    #[test]
    fn the_project_is_read_from_the_token() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"project_id":"p"}"#);
        assert_eq!(project_of(&format!("h.{claims}.s")).as_deref(), Some("p"));
        assert_eq!(project_of("opaque"), None);
    }
}
