//! A project: what owns every resource. It never changes its organization.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    pub id: Uuid,
    pub org_id: Uuid,
    /// Unique within the organization.
    pub slug: String,
    pub display_name: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "org_id": "01970000-0000-7000-8000-000000000001", "slug": "vision" }))]
pub struct NewProject {
    pub org_id: Uuid,
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub slug: String,
    /// The slug, unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub display_name: Option<String>,
}

/// What is left out stays as it is. The slug is part of repository names and never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "display_name": "Example" }))]
pub struct ProjectPatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub display_name: Option<String>,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
