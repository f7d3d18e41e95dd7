//! Tokens for machines: what is asked for one, and the answer.

use std::fmt;

use chrono::{DateTime, Utc};
use domain::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Proof of a registered key, by exactly one of `assertion` and `private_key_pem`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "service_account_id": "01970000-0000-7000-8000-000000000007", "key_id": "k1", "assertion": "eyJhbGciOiJFZERTQSJ9.e30.c2ln",
}))]
pub struct ServiceAccountTokenRequest {
    pub service_account_id: Uuid,
    #[schema(min_length = 1, max_length = 200)]
    pub key_id: String,
    /// A JWT signed by the key: `iss` and `sub` the service account, `aud` the platform's issuer, at most 60 s, used
    /// once.
    #[schema(value_type = Option<String>)]
    pub assertion: Option<Secret<String>>,
    /// The key itself, for a first try by hand. It is neither stored nor logged.
    #[schema(value_type = Option<String>)]
    pub private_key_pem: Option<Secret<String>>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessToken {
    pub access_token: String,
    /// `Bearer`.
    pub token_type: String,
    /// Seconds.
    pub expires_in: i64,
    pub expires_at: DateTime<Utc>,
    /// Permission keys, separated by spaces.
    pub scope: String,
    /// Of a token exchange (RFC 8693).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_token_type: Option<String>,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// RFC 8693, form-encoded.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "eyJhbGciOiJSUzI1NiJ9.e30.c2ln",
    "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "audience": "01970000-0000-7000-8000-000000000008",
}))]
pub struct TokenExchangeRequest {
    /// `urn:ietf:params:oauth:grant-type:token-exchange`.
    pub grant_type: String,
    /// The outside issuer's token.
    #[schema(value_type = String)]
    pub subject_token: Secret<String>,
    /// `urn:ietf:params:oauth:token-type:jwt` or `…:id_token`.
    pub subject_token_type: String,
    /// The id of the federated trust to be used.
    pub audience: Uuid,
}

/// RFC 6749, section 5.2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OAuthError {
    pub error: String,
    pub error_description: String,
}
