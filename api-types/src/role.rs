//! An organization's own role: a set of permission keys under a name. The built-in roles are not listed; they never
//! change.

use chrono::{DateTime, Utc};
use domain::{Permission, ProjectPermission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Role {
    pub id: Uuid,
    pub org_id: Uuid,
    pub name: String,
    pub permissions: Vec<Permission>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "night-shift", "permissions": ["workflows.read", "workflows.operate"] }))]
pub struct NewRole {
    /// None of the built-in roles' names.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    /// At most what the caller holds.
    #[schema(min_items = 1, value_type = Vec<ProjectPermission>)]
    pub permissions: Vec<Permission>,
}

/// What is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "permissions": ["workflows.read"] }))]
pub struct RolePatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, value_type = Option<Vec<ProjectPermission>>)]
    pub permissions: Option<Vec<Permission>>,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
