//! Signing a person in by a browser: the authorization code flow with PKCE (RFC 7636), as a public client. The browser
//! is sent to the issuer, comes back with a code, and the code is turned into an ID token that is judged here.
//!
//! Only the ID token is used, and only to learn who signed in. No token is kept.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::Url;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::fetch::Fetcher;
use super::{OidcClaims, SetupFault, Verifier};
use crate::fault::TokenFault;

/// What makes one attempt its own: chosen at random, kept by the browser, and shown to the issuer only as far as needed.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Comes back beside the code: the answer belongs to this browser.
    pub state: &'a str,
    /// Comes back inside the ID token: the token was made for this attempt.
    pub nonce: &'a str,
    /// Proves to the issuer that whoever redeems the code also asked for it.
    pub verifier: &'a str,
}

/// None of these quotes a code or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInFault {
    #[error("issuer {issuer} cannot be asked: {why}")]
    Unavailable { issuer: String, why: String },
    #[error("the issuer did not accept the code")]
    CodeRefused,
    #[error("the issuer's answer has no ID token")]
    NoIdToken,
    #[error(transparent)]
    Token(#[from] TokenFault),
}

#[derive(Debug)]
pub struct CodeFlow {
    issuer: String,
    client_id: String,
    redirect_uri: String,
    verifier: Arc<Verifier>,
    fetcher: Fetcher,
    endpoints: OnceCell<Endpoints>,
}

#[derive(Debug, Clone, Deserialize)]
struct Endpoints {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
}

impl CodeFlow {
    /// `issuer` is one that `verifier` trusts for everybody; `loopback_http` lets it be reached by plain http on this machine.
    pub fn new(
        issuer: &str,
        client_id: &str,
        redirect_uri: String,
        verifier: Arc<Verifier>,
        loopback_http: bool,
    ) -> Result<CodeFlow, SetupFault> {
        let fetcher = Fetcher::anywhere(loopback_http).map_err(SetupFault::Client)?;
        if !fetcher.may_reach(issuer) {
            return Err(SetupFault::Address(issuer.to_owned()));
        }
        let (issuer, client_id) = (issuer.to_owned(), client_id.to_owned());
        Ok(CodeFlow { issuer, client_id, redirect_uri, verifier, fetcher, endpoints: OnceCell::new() })
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Where the browser goes to sign in.
    pub async fn address(&self, attempt: Attempt<'_>) -> Result<String, SignInFault> {
        let endpoint = &self.endpoints().await?.authorization_endpoint;
        let mut address =
            Url::parse(endpoint).map_err(|_| self.unavailable(format!("{endpoint} is no address")))?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(attempt.verifier));
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", "openid profile"),
            ("state", attempt.state),
            ("nonce", attempt.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(address.into())
    }

    /// Who signed in, by the code that the browser brought back.
    pub async fn redeem(&self, code: &str, attempt: Attempt<'_>) -> Result<OidcClaims, SignInFault> {
        #[derive(Deserialize)]
        struct Tokens {
            id_token: Option<String>,
        }
        let endpoint = &self.endpoints().await?.token_endpoint;
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("code", code),
            ("code_verifier", attempt.verifier),
        ];
        let answer = self.fetcher.post_form(endpoint, &form).await.map_err(|why| self.unavailable(why))?;
        let answer = answer.ok_or(SignInFault::CodeRefused)?;
        let tokens = serde_json::from_slice::<Tokens>(&answer).ok();
        let id_token = tokens.and_then(|tokens| tokens.id_token).ok_or(SignInFault::NoIdToken)?;
        Ok(self.verifier.verify_id_token(&id_token, &self.issuer, &self.client_id, attempt.nonce).await?)
    }

    /// Read when the first person signs in; an issuer that does not answer then is asked again by the next.
    async fn endpoints(&self) -> Result<&Endpoints, SignInFault> {
        let read = || async {
            let document = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
            let found: Endpoints = serde_json::from_slice(&self.fetcher.get(&document).await?)
                .map_err(|_| format!("{document} does not say where to sign in"))?;
            if found.issuer != self.issuer {
                return Err(format!("{document} speaks for another issuer"));
            }
            if !self.fetcher.may_reach(&found.authorization_endpoint) {
                return Err(format!("{document} sends browsers where nobody should sign in"));
            }
            Ok(found)
        };
        self.endpoints.get_or_try_init(read).await.map_err(|why| self.unavailable(why))
    }

    fn unavailable(&self, why: String) -> SignInFault {
        SignInFault::Unavailable { issuer: self.issuer.clone(), why }
    }
}

#[cfg(test)]
mod tests;
