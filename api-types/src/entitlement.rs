//! What a project may do with an app.

use chrono::{DateTime, Utc};
use domain::entitlement::{Effective, Limits};
use domain::runtime::{ControlPlaneScope, OperatingMode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Entitlement {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub enabled: bool,
    /// What the project gave up of what it is allowed.
    pub policy_overrides: Limits,
    pub updated_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "enabled": true, "policy_overrides": { "allowed_control_plane_scopes": ["project"] } }))]
pub struct SetEntitlement {
    /// Disabling stops no running instance; it blocks every lifecycle action but decommissioning.
    pub enabled: bool,
    /// Only narrows: what an outer layer does not allow is refused, with that layer named.
    #[serde(default)]
    pub policy_overrides: Limits,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The entitlement as it is now, and what it comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EntitlementSet {
    #[serde(flatten)]
    pub entitlement: Entitlement,
    pub effective: EffectiveEntitlement,
}

/// The policy after every layer has had its say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveEntitlement {
    pub app_slug: String,
    /// The version whose manifest is the outermost layer; null where the app has none.
    pub version: Option<String>,
    /// Whether the project may use the app at all.
    pub enabled: bool,
    #[serde(flatten)]
    pub policy: Effective,
    /// Every mode and scope an instance may have.
    pub allowed_pairs: Vec<ModeAndScope>,
    /// The project's instances of the app that are not decommissioned.
    pub instances: i64,
    /// Lifecycle actions that are refused now.
    pub blocked_actions: Vec<String>,
    /// What that means for the instances, in one sentence.
    pub notice: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModeAndScope {
    pub operating_mode: OperatingMode,
    pub control_plane_scope: ControlPlaneScope,
}
