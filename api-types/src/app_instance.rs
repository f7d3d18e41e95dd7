//! An app instance: one deployment of an app's version, with the values the server decided.

use chrono::{DateTime, Utc};
use domain::{
    ControlPlaneScope, InstanceStatus, OperatingMode, ReasonKind, RuntimeBackend, StatusReason,
    TenantBoundaryMode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::WorkflowHandle;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppInstance {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    /// The version that serves; it changes only at the switch.
    pub version: String,
    /// Where an upgrade or rollback is going.
    pub target_version: Option<String>,
    pub display_name: String,
    pub status: InstanceStatus,
    /// Why it is not what it should be.
    pub status_reason: Option<InstanceReason>,
    pub operating_mode: OperatingMode,
    pub control_plane_scope: ControlPlaneScope,
    pub runtime_backend: RuntimeBackend,
    /// Follows the scope.
    pub tenant_boundary_mode: TenantBoundaryMode,
    pub placement_intent: Value,
    pub config: Value,
    pub resources: Value,
    /// What serves, or is about to.
    pub artifacts: Vec<InstanceArtifact>,
    pub operator_service_account_id: Option<Uuid>,
    pub last_operation: Option<Value>,
    pub allowed_actions: Vec<InstanceAction>,
    pub correlation_id: String,
    pub created_at: DateTime<Utc>,
    pub activated_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceReason {
    pub code: StatusReason,
    /// Whether nobody need act, or a person must.
    pub kind: ReasonKind,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceArtifact {
    pub name: String,
    pub artifact_id: Uuid,
    pub digest: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceAction {
    Decommission,
}

/// The instance together with the run that acts on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppInstanceWithRun {
    #[serde(flatten)]
    pub instance: AppInstance,
    pub workflow: WorkflowHandle,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceAccess {
    pub endpoints: Vec<InstanceEndpoint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceEndpoint {
    pub name: String,
    /// The node it is on.
    pub node: String,
    /// `host:port` on the node itself.
    pub private_address: String,
    /// Where it is reached on the node, or at the near end of the tunnel.
    pub url: String,
    /// Makes the address reachable from elsewhere.
    pub tunnel_command: String,
    /// What the node told last: `healthy`, `unhealthy` or `unknown`.
    pub health: String,
}

/// That an instance left nothing behind, signed by the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeardownReceipt {
    /// The key that signed: its thumbprint.
    pub key_id: String,
    /// The public half of that key, as PEM.
    pub public_key: String,
    /// The receipt as JSON, in base64url.
    pub payload: String,
    /// Ed25519 over the type and the payload, in base64url.
    pub signature: String,
}
