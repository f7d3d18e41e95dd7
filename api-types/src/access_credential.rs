//! Secrets of a project in the platform's custody. Nothing here can show one: a secret comes in by a request and goes out
//! wrapped.

use chrono::{DateTime, Utc};
use domain::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::intent::WrappedCredential;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessCredentialType {
    /// Any text: a token, a password, an address with a password in it.
    #[default]
    Secret,
    /// The private half of an SSH key.
    SshKey,
}

impl AccessCredentialType {
    pub const fn as_str(self) -> &'static str {
        match self {
            AccessCredentialType::Secret => "secret",
            AccessCredentialType::SshKey => "ssh_key",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessCredentialStatus {
    Active,
    Revoked,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "model-hub", "value": "hf_example" }))]
pub struct NewAccessCredential {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    #[serde(default)]
    pub kind: AccessCredentialType,
    /// The secret itself. It is sealed at once and never shown.
    #[schema(value_type = String, min_length = 1, max_length = 32768)]
    pub value: Secret<String>,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "value": "hf_another" }))]
pub struct RotateAccessCredential {
    /// What launches hand over from now on; what runs keeps what it was given.
    #[schema(value_type = String, min_length = 1, max_length = 32768)]
    pub value: Secret<String>,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "ttl_seconds": 300 }))]
pub struct DeliverAccessCredential {
    /// How long the token is good; five minutes unless given.
    #[serde(default)]
    #[schema(minimum = 60, maximum = 3600)]
    pub ttl_seconds: Option<i32>,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessCredential {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    pub kind: AccessCredentialType,
    pub status: AccessCredentialStatus,
    /// Rises with every rotation.
    pub version: i32,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub rotated_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The secret on its way out: unwrapped it gives `name` and `value`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredAccessCredential {
    pub id: Uuid,
    pub version: i32,
    pub credential: WrappedCredential,
}
