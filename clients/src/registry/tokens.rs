//! The tokens a registry believes: who, what repository, which actions, until when.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use serde::Serialize;
use uuid::Uuid;

use super::authority::{Authority, AuthorityFault};
use super::scope::Access;
use crate::clock::Clock;

/// Clients ask again, so tokens may be short.
const LONGEST: TimeDelta = TimeDelta::seconds(300);

/// Registries believe a token this much longer than it says, so it says that much less.
const REGISTRY_LEEWAY: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug)]
pub struct TokenServer {
    authority: Authority,
    /// As the registry's configuration has it: the tokens' `iss` and `aud`.
    pub issuer: String,
    pub service: String,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
pub struct RegistryToken {
    pub token: Secret<String>,
    pub issued_at: DateTime<Utc>,
    /// Seconds for which a client may use it.
    pub expires_in: i64,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    /// Registries report it as the actor of what happens.
    sub: &'a str,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: Uuid,
    access: &'a [Access],
}

impl TokenServer {
    pub fn new(authority: Authority, issuer: &str, service: &str, clock: Arc<dyn Clock>) -> TokenServer {
        TokenServer { authority, issuer: issuer.to_owned(), service: service.to_owned(), clock }
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// For somebody whose credential is good for `left` more. The registry stops believing the token when the credential
    /// ends, not a minute later.
    pub fn issue(
        &self,
        subject: &str,
        access: &[Access],
        left: TimeDelta,
    ) -> Result<RegistryToken, AuthorityFault> {
        let now = self.clock.now();
        let lifetime = (left - REGISTRY_LEEWAY).min(LONGEST);
        let claims = Claims {
            iss: &self.issuer,
            aud: &self.service,
            sub: subject,
            iat: now.timestamp(),
            nbf: now.timestamp(),
            exp: (now + lifetime).timestamp(),
            jti: Uuid::now_v7(),
            access,
        };
        let token = Secret::new(self.authority.sign(&claims)?);
        Ok(RegistryToken { token, issued_at: now, expires_in: lifetime.num_seconds().max(1) })
    }

    /// For the platform's own errands.
    pub(super) fn own(&self, access: Access) -> Result<Secret<String>, AuthorityFault> {
        Ok(self.issue("platform", &[access], LONGEST)?.token)
    }
}
