//! Policies: what administrators may tune, and on which layer.

use chrono::{DateTime, Utc};
use domain::{PolicyKey, PolicyLayer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// One key with its default and everything that is set for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    pub key: PolicyKey,
    /// Holds where no layer says anything.
    pub default: Value,
    /// In words.
    pub bounds: String,
    /// At most 100, by layer and then by whom they are for.
    pub set: Vec<PolicyValue>,
    /// Whether there are more; `scope_id` finds those of one organization, project or user.
    #[serde(default)]
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyValue {
    pub key: PolicyKey,
    pub scope: PolicyLayer,
    /// The nil id on the global layer.
    pub scope_id: Uuid,
    pub value: Value,
    pub updated_by: Uuid,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "value": 900, "reason": "shorter tokens" }))]
pub struct SetPolicy {
    pub value: Value,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
