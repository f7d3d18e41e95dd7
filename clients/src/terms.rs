//! What the claims of a signed token must say to be accepted here and now: from whom, for whom, and when.

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::Header;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::TokenFault;
use crate::jwt::{self, VerifyingKey};

/// How far the clocks of two machines may differ.
pub(crate) const SKEW: TimeDelta = TimeDelta::seconds(30);

/// The claims that every token of ours or others' has.
#[derive(Debug, Deserialize)]
pub(crate) struct Registered {
    pub(crate) iss: String,
    pub(crate) sub: String,
    aud: Audience,
    // RFC 7519 allows fractions of a second.
    exp: f64,
    nbf: Option<f64>,
    iat: Option<f64>,
    pub(crate) jti: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

pub(crate) struct Terms<'a> {
    pub(crate) issuer: &'a str,
    /// The token must be meant for one of these.
    pub(crate) audiences: &'a [String],
    pub(crate) now: DateTime<Utc>,
}

impl Terms<'_> {
    pub(crate) fn accept(&self, claims: &Registered) -> Result<(), TokenFault> {
        if claims.iss != self.issuer {
            return Err(TokenFault::Invalid("it is from another issuer"));
        }
        if claims.sub.is_empty() {
            return Err(TokenFault::Invalid("it names no subject"));
        }
        if !self.audiences.iter().any(|audience| claims.aud.names(audience)) {
            return Err(TokenFault::WrongAudience);
        }
        self.accept_times(claims)
    }

    fn accept_times(&self, claims: &Registered) -> Result<(), TokenFault> {
        let latest = (self.now + SKEW).timestamp() as f64;
        if claims.iat.is_some_and(|issued| issued > latest) {
            return Err(TokenFault::Invalid("it was issued in the future"));
        }
        if claims.nbf.is_some_and(|begin| begin > latest) {
            return Err(TokenFault::Invalid("it is not valid yet"));
        }
        // Written so that a time that is not a number counts as past.
        if claims.exp > (self.now - SKEW).timestamp() as f64 { Ok(()) } else { Err(TokenFault::Expired) }
    }
}

impl Registered {
    /// How long the token is meant to live; `None` when it does not say when it was issued.
    pub(crate) fn lifetime_seconds(&self) -> Option<f64> {
        self.iat.map(|issued| self.exp - issued)
    }

    pub(crate) fn expires_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.exp as i64, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

impl Audience {
    fn names(&self, wanted: &str) -> bool {
        match self {
            Audience::One(one) => one == wanted,
            Audience::Many(many) => many.iter().any(|one| one == wanted),
        }
    }
}

/// The claims of a token that `key` signed and that meets `terms`: those every token has, and the rest as `T`.
pub(crate) fn accepted<T: DeserializeOwned>(
    token: &str,
    header: &Header,
    key: &VerifyingKey,
    terms: &Terms<'_>,
) -> Result<(Registered, T), TokenFault> {
    let claims: Value = jwt::signed(token, header, key)?;
    let registered = Registered::deserialize(&claims)
        .map_err(|_| TokenFault::Invalid("it lacks one of iss, sub, aud and exp"))?;
    terms.accept(&registered)?;
    let rest =
        serde_json::from_value(claims).map_err(|_| TokenFault::Invalid("its claims cannot be read"))?;
    Ok((registered, rest))
}
