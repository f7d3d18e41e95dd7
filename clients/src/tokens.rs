//! The platform's own short-lived tokens, for machines: service accounts, exchanged CI identities, nodes. They are
//! signed with the platform's key and say who acts, where, and with which permission keys.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{ActorType, Secret};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Clock;
use crate::fault::TokenFault;
use crate::jwt;
use crate::signing::{KeyFault, SigningKeys};
use crate::terms::{Terms, accepted};

/// Whom a token is for, and what it allows.
#[derive(Debug, Clone)]
pub struct Bearer {
    pub subject: Uuid,
    pub actor_type: ActorType,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    /// Permission keys, separated by spaces.
    pub scope: String,
    /// The registered key that its holder proved to have, where it was one.
    pub key_id: Option<String>,
    pub lifetime: TimeDelta,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenClaims {
    pub iss: String,
    pub aud: String,
    pub sub: Uuid,
    pub actor_type: ActorType,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    pub jti: Uuid,
    #[serde(with = "chrono::serde::ts_seconds")]
    pub iat: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_seconds")]
    pub exp: DateTime<Utc>,
}

#[derive(Debug)]
pub struct Minted {
    pub access_token: Secret<String>,
    pub claims: TokenClaims,
}

#[derive(Debug, Clone)]
pub struct Minter {
    issuer: String,
    audience: String,
    keys: SigningKeys,
    clock: Arc<dyn Clock>,
}

impl Minter {
    pub fn new(issuer: &str, audience: &str, keys: SigningKeys, clock: Arc<dyn Clock>) -> Minter {
        Minter { issuer: issuer.to_owned(), audience: audience.to_owned(), keys, clock }
    }

    /// What an assertion must name as its audience to be exchanged for one of these tokens.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Whom the tokens are meant for: this platform's API.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    pub fn mint(&self, bearer: Bearer) -> Result<Minted, KeyFault> {
        let now = self.clock.now();
        let claims = TokenClaims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: bearer.subject,
            actor_type: bearer.actor_type,
            org_id: bearer.org_id,
            project_id: bearer.project_id,
            scope: bearer.scope,
            key_id: bearer.key_id,
            jti: Uuid::now_v7(),
            iat: now,
            exp: now + bearer.lifetime,
        };
        Ok(Minted { access_token: Secret::new(self.keys.sign(&claims)?), claims })
    }

    /// Whether the token says that it is one of ours: where to send it for judgement, and nothing more.
    pub fn issued(&self, token: &str) -> bool {
        jwt::claimed_issuer(token).is_some_and(|issuer| issuer == self.issuer)
    }

    pub fn verify(&self, token: &str) -> Result<TokenClaims, TokenFault> {
        let header = jwt::header(token)?;
        let key = self.keys.named(header.kid.as_deref())?;
        let audiences = std::slice::from_ref(&self.audience);
        let terms = Terms { issuer: &self.issuer, audiences, now: self.clock.now() };
        accepted(token, &header, &key, &terms).map(|(_, claims)| claims)
    }
}

#[cfg(test)]
mod tests;
