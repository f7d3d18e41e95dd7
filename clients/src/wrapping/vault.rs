//! Vault or `OpenBao` keeps the secret. The platform needs one right there: `update` on `sys/wrapping/wrap`.

use std::time::Duration;

use domain::Secret;
use serde::Deserialize;
use serde_json::Value;

/// A request holds its transaction meanwhile, so a Vault that is slow is one that is away.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultFault {
    #[error("the secret store does not answer: {0}")]
    Unavailable(&'static str),
    #[error("the secret store refused with status {0}")]
    Refused(u16),
}

#[derive(Debug, Clone)]
pub struct Vault {
    http: reqwest::Client,
    url: String,
    token: Secret<String>,
}

#[derive(Deserialize)]
struct Answer {
    wrap_info: WrapInfo,
}

#[derive(Deserialize)]
struct WrapInfo {
    token: Secret<String>,
}

impl Vault {
    pub fn new(url: &str, token: Secret<String>) -> Result<Vault, VaultFault> {
        // An error says that a provider is installed already: there is only one we compile.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(PATIENCE).build();
        let http = http.map_err(|_| VaultFault::Unavailable("no client can be made"))?;
        Ok(Vault { http, url: url.trim_end_matches('/').to_owned(), token })
    }

    /// Where the receiver opens what was wrapped.
    pub fn unwrap_url(&self) -> String {
        format!("{}/v1/sys/wrapping/unwrap", self.url)
    }

    pub async fn wrap(&self, secret: &Value, ttl_seconds: i32) -> Result<Secret<String>, VaultFault> {
        let answer = self
            .http
            .post(format!("{}/v1/sys/wrapping/wrap", self.url))
            .header("x-vault-token", self.token.expose())
            .header("x-vault-wrap-ttl", ttl_seconds)
            .json(secret)
            .send()
            .await
            .map_err(unavailable)?;
        if !answer.status().is_success() {
            return Err(VaultFault::Refused(answer.status().as_u16()));
        }
        let answer: Answer = answer.json().await.map_err(unavailable)?;
        Ok(answer.wrap_info.token)
    }
}

fn unavailable(error: reqwest::Error) -> VaultFault {
    VaultFault::Unavailable(match error.is_timeout() {
        true => "it did not answer in time",
        false if error.is_decode() => "its answer cannot be read",
        false => "the connection failed",
    })
}
