//! Whose people are believed. A token of a trusted issuer is accepted when one of that issuer's published keys signed
//! it, it is meant for us, and its time is now. The issuer authenticates; what the subject may do is decided elsewhere.

pub mod code_flow;
mod fetch;
mod provider;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use jsonwebtoken::Header;
use jsonwebtoken::jwk::JwkSet;
use serde_json::{Map, Value};

use self::fetch::Fetcher;
use self::provider::Provider;
use crate::clock::Clock;
use crate::fault::TokenFault;
use crate::jwt::{self, WRONG_SIGNATURE};
use crate::key_set::KeySet;
use crate::terms::{Registered, Terms, accepted};

/// So many outside issuers are remembered at once. One more, and all are asked for their keys again.
const MOST_FEDERATED: usize = 256;

/// An issuer that the operator trusts for everybody.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What its people are recorded under. The address may change over the years; this must not.
    pub name: String,
    /// Exactly as its tokens name it in `iss`.
    pub url: String,
    /// A token must be meant for one of these.
    pub audiences: Vec<String>,
    pub keys: IssuerKeys,
}

#[derive(Debug, Clone)]
pub enum IssuerKeys {
    /// Where the issuer's discovery document says.
    Discovered,
    /// Known beforehand; the issuer is never asked.
    Given(JwkSet),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupFault {
    #[error("issuer {0} must begin with https:// (http:// only on loopback, and only where that is allowed)")]
    Address(String),
    #[error("issuer {0} has no audience")]
    NoAudience(String),
    #[error("issuer {0} appears twice")]
    Twice(String),
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// Who a token is about, and everything else it says.
#[derive(Clone, PartialEq)]
pub struct OidcClaims {
    /// The name of a trusted issuer; the address of one that a project trusts.
    pub issuer: String,
    pub subject: String,
    /// The name the issuer prefers to show, where it gives one.
    pub username: Option<String>,
    pub expires_at: DateTime<Utc>,
    pub claims: Map<String, Value>,
}

impl OidcClaims {
    fn of(registered: Registered, claims: Map<String, Value>) -> OidcClaims {
        let username = claims.get("preferred_username").and_then(Value::as_str).map(str::to_owned);
        let expires_at = registered.expires_at();
        OidcClaims { issuer: registered.iss, subject: registered.sub, username, expires_at, claims }
    }
}

impl fmt::Debug for OidcClaims {
    /// Names and addresses of people do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OidcClaims { issuer, subject, .. } = self;
        f.debug_struct("OidcClaims").field("issuer", issuer).field("subject", subject).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Trusted {
    name: String,
    audiences: Vec<String>,
    provider: Provider,
}

#[derive(Debug)]
pub struct Verifier {
    /// By address.
    trusted: HashMap<String, Trusted>,
    federated: Mutex<HashMap<String, Arc<Provider>>>,
    /// Reaches what the operator configured, wherever it is.
    to_trusted: Fetcher,
    /// Reaches what a project named, on the open internet only.
    to_federated: Fetcher,
    clock: Arc<dyn Clock>,
}

impl Verifier {
    /// `loopback_http` lets issuers be reached by plain http on this machine.
    pub fn new(
        issuers: Vec<Issuer>,
        loopback_http: bool,
        clock: Arc<dyn Clock>,
    ) -> Result<Verifier, SetupFault> {
        let to_trusted = Fetcher::anywhere(loopback_http).map_err(SetupFault::Client)?;
        let to_federated = Fetcher::public_only(loopback_http).map_err(SetupFault::Client)?;
        let mut trusted = HashMap::new();
        for Issuer { name, url, audiences, keys } in issuers {
            if audiences.is_empty() {
                return Err(SetupFault::NoAudience(url));
            }
            let provider = match keys {
                IssuerKeys::Given(keys) => Provider::given(&url, KeySet::of(keys.keys.into_iter())),
                IssuerKeys::Discovered if to_trusted.may_reach(&url) => Provider::discovered(&url),
                IssuerKeys::Discovered => return Err(SetupFault::Address(url)),
            };
            if trusted.insert(url.clone(), Trusted { name, audiences, provider }).is_some() {
                return Err(SetupFault::Twice(url));
            }
        }
        Ok(Verifier { trusted, federated: Mutex::default(), to_trusted, to_federated, clock })
    }

    /// Judges a token by the issuers that are trusted for everybody.
    pub async fn verify(&self, token: &str) -> Result<OidcClaims, TokenFault> {
        let header = jwt::header(token)?;
        let issuer = jwt::claimed_issuer(token).ok_or(TokenFault::Invalid("it names no issuer"))?;
        let Trusted { name, audiences, provider } =
            self.trusted.get(&issuer).ok_or(TokenFault::Invalid("its issuer is not trusted"))?;
        let claims = self.judge(token, &header, provider, &self.to_trusted, audiences).await?;
        Ok(OidcClaims { issuer: name.clone(), ..claims })
    }

    /// Judges the ID token of a sign-in: made by this issuer, for this client, in answer to this very attempt.
    pub async fn verify_id_token(
        &self,
        token: &str,
        issuer: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<OidcClaims, TokenFault> {
        let header = jwt::header(token)?;
        let Trusted { name, provider, .. } =
            self.trusted.get(issuer).ok_or(TokenFault::Invalid("its issuer is not trusted"))?;
        let client = [client_id.to_owned()];
        let claims = self.judge(token, &header, provider, &self.to_trusted, &client).await?;
        if claims.claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
            return Err(TokenFault::Invalid("it answers another sign-in"));
        }
        // A token for several audiences says whom it was handed to (OpenID Connect Core, 3.1.3.7).
        let handed_to = claims.claims.get("azp").and_then(Value::as_str);
        if handed_to.is_some_and(|party| party != client_id) {
            return Err(TokenFault::Invalid("it was handed to another client"));
        }
        Ok(OidcClaims { issuer: name.clone(), ..claims })
    }

    /// Judges a token by an issuer that a project trusts for itself. The caller has looked that trust up.
    pub async fn verify_federated(
        &self,
        token: &str,
        issuer: &str,
        audience: &str,
    ) -> Result<OidcClaims, TokenFault> {
        let header = jwt::header(token)?;
        if !self.to_federated.may_reach(issuer) {
            return Err(TokenFault::Invalid("its issuer cannot be asked for keys"));
        }
        let provider = self.federated_provider(issuer);
        self.judge(token, &header, &provider, &self.to_federated, &[audience.to_owned()]).await
    }

    /// Whether a project may name this address as an issuer.
    pub fn may_federate(&self, issuer: &str) -> bool {
        self.to_federated.may_reach(issuer)
    }

    async fn judge(
        &self,
        token: &str,
        header: &Header,
        provider: &Provider,
        fetcher: &Fetcher,
        audiences: &[String],
    ) -> Result<OidcClaims, TokenFault> {
        let now = self.clock.now();
        let keys = provider.keys_for(header, fetcher, now).await?;
        let terms = Terms { issuer: provider.issuer(), audiences, now };
        let mut fault = TokenFault::Invalid("it is signed by an unknown key");
        for key in keys.candidates(header) {
            match accepted::<Map<String, Value>>(token, header, key, &terms) {
                Ok((registered, claims)) => return Ok(OidcClaims::of(registered, claims)),
                Err(TokenFault::Invalid(WRONG_SIGNATURE)) => fault = TokenFault::Invalid(WRONG_SIGNATURE),
                Err(final_word) => return Err(final_word),
            }
        }
        Err(fault)
    }

    fn federated_provider(&self, issuer: &str) -> Arc<Provider> {
        let mut federated = self.federated.lock().unwrap_or_else(|held| held.into_inner());
        if federated.len() >= MOST_FEDERATED && !federated.contains_key(issuer) {
            federated.clear();
        }
        let provider = || Arc::new(Provider::discovered(issuer));
        federated.entry(issuer.to_owned()).or_insert_with(provider).clone()
    }
}

#[cfg(test)]
mod tests;
