//! A member of an organization or a project, with exactly one role there.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// The membership's own id, by which it is changed and ended.
    pub id: Uuid,
    pub user_id: Uuid,
    pub username: String,
    /// A built-in role, or the name of one of the organization's own.
    pub role: String,
    /// The organization's own role; `null` for a built-in one.
    pub role_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Somebody who has signed in before, by exactly one of `user_id` and `username`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "username": "operator", "role": "operator" }))]
pub struct NewMember {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub username: Option<String>,
    /// In a project `admin`, `operator`, `publisher` or `viewer`; in an organization `owner`, `admin`, `member` or
    /// `viewer`; or one of the organization's own roles.
    #[schema(min_length = 1, max_length = 63)]
    pub role: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "role": "viewer" }))]
pub struct MemberPatch {
    #[schema(min_length = 1, max_length = 63)]
    pub role: String,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
