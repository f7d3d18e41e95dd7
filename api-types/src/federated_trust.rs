//! A federated trust: tokens of an outside issuer that a project accepts in exchange for a short token of one of its
//! service accounts, so that a pipeline needs no stored key.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FederatedTrust {
    pub id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    /// Whom the exchanged token acts as.
    pub service_account_id: Uuid,
    pub issuer: String,
    pub audience: String,
    pub subject_pattern: String,
    pub claims: BTreeMap<String, String>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "ci-main", "service_account_id": "01970000-0000-7000-8000-000000000003",
    "issuer": "https://ci.example", "audience": "gpuaas", "subject_pattern": "repo:acme/vision:ref:refs/heads/*",
    "claims": { "environment": "production" },
}))]
pub struct NewFederatedTrust {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    pub service_account_id: Uuid,
    /// Exactly as the outside tokens name it; its keys are found by discovery.
    #[schema(min_length = 1, max_length = 500)]
    pub issuer: String,
    /// What the outside tokens must name as their audience.
    #[schema(min_length = 1, max_length = 500)]
    pub audience: String,
    /// What their subject must look like; `*` stands for any run of characters.
    #[schema(min_length = 1, max_length = 500)]
    pub subject_pattern: String,
    /// Further claims and what they must look like.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
}
