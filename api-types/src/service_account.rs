//! A service account: a project's machine, with an allowlist of permission keys and up to two live keys of its own.

use std::fmt;

use chrono::{DateTime, Utc};
use domain::{Permission, ProjectPermission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceAccountStatus {
    Active,
    Disabled,
    Deleted,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceAccount {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub slug: String,
    pub name: String,
    pub description: Option<String>,
    pub permissions: Vec<Permission>,
    pub status: ServiceAccountStatus,
    /// Live keys, newest first.
    pub keys: Vec<ServiceAccountKey>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// When a token was last issued to it.
    pub last_used_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceAccountKey {
    pub key_id: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "app-operator", "slug": "app-operator", "description": "Drives our apps" }))]
pub struct NewServiceAccount {
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// Unique within the project; made from the name unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// At most what the caller holds. Unless given: read and drive instances, publish artifacts, read workflows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ProjectPermission>>)]
    pub permissions: Option<Vec<Permission>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "revoke_others": false, "reason": "The yearly change." }))]
pub struct RotateKey {
    /// Revoke all older keys at once instead of keeping the newest of them: for a key that leaked.
    #[serde(default)]
    pub revoke_others: bool,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The account together with a key that was just made. The private half is told once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceAccountWithKey {
    #[serde(flatten)]
    pub account: ServiceAccount,
    pub key_id: String,
    /// Told once: `null` when the same request is answered again.
    pub private_key_pem: Option<String>,
    pub secret_already_delivered: bool,
}

impl fmt::Debug for ServiceAccountWithKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServiceAccountWithKey { account, key_id, .. } = self;
        f.debug_struct("ServiceAccountWithKey")
            .field("account", account)
            .field("key_id", key_id)
            .finish_non_exhaustive()
    }
}
