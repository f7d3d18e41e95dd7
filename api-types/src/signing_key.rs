//! The keys that vouch for a project's artifacts.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "release",
    "public_key_pem": "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
}))]
pub struct NewSigningKey {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    /// P-256 in PEM form, as `cosign generate-key-pair` writes it to `cosign.pub`.
    #[schema(min_length = 1, max_length = 2000)]
    pub public_key_pem: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SigningKey {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    /// `ecdsa_p256_sha256`.
    pub algorithm: String,
    pub public_key_pem: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    /// From then on it vouches for nothing new.
    pub retired_at: Option<DateTime<Utc>>,
}
