//! An app instance: one deployment of an app's version, with the values the server decided.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{
    ControlPlaneScope, InstanceStatus, LogLine, OperatingMode, ReasonKind, RuntimeBackend, StatusReason,
    TenantBoundaryMode,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::WorkflowHandle;

/// Asks for an instance. What is left out the server decides, and answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "app_slug": "hello", "version": "1.0.0", "display_name": "First try" }))]
pub struct NewAppInstance {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub app_slug: String,
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub version: String,
    /// For people.
    #[schema(min_length = 1, max_length = 200)]
    pub display_name: String,
    /// The first that the project's policy allows, unless given.
    #[serde(default)]
    pub operating_mode: Option<OperatingMode>,
    #[serde(default)]
    pub control_plane_scope: Option<ControlPlaneScope>,
    /// As the version's `config_schema` says; its defaults are filled in.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub config: Option<Map<String, Value>>,
    /// As the version's `placement_schema` says, or else `{allocation_id}`; without one the first allocation that passes
    /// every predicate is taken.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub placement_intent: Option<Map<String, Value>>,
    #[serde(default)]
    pub resources: Option<WantedResources>,
    /// One of the version's image variants; the one that fits the accelerator, unless given.
    #[serde(default)]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub variant: Option<String>,
    /// An artifact of this very version to run instead of the one that was frozen for it.
    #[serde(default)]
    pub artifact_id: Option<Uuid>,
    /// Packages beside the version's own, by PEP 508 specifiers.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub packages: Vec<String>,
    /// Class of the version's credentials to the project's credential.
    #[serde(default)]
    pub credentials: BTreeMap<String, Uuid>,
}

/// What of a node the instance should get; within the version's bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedResources {
    #[serde(default)]
    #[schema(maximum = 65536)]
    pub gpu_count: Option<u32>,
    #[serde(default)]
    #[schema(maximum = 65536)]
    pub cpu_cores: Option<u32>,
    #[serde(default)]
    #[schema(maximum = 65536)]
    pub memory_gib: Option<u32>,
    /// The node's port for the version's first port; a free one, unless given.
    #[serde(default)]
    #[schema(minimum = 1024, maximum = 65535)]
    pub host_port: Option<u16>,
}

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
    /// What may be asked of it now, by the last word of the path.
    #[schema(example = json!(["upgrade", "decommission"]))]
    pub allowed_actions: Vec<String>,
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

/// One part of an instance, as its node saw it last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceMember {
    /// Its name and the generation of its workload.
    pub id: String,
    pub allocation_id: Option<Uuid>,
    pub node_id: Uuid,
    /// Which part of the instance; an instance of one container has the member `main`.
    pub component_key: String,
    /// Rises with every change of the instance.
    pub generation: i64,
    /// Always `node` for what the node agent runs.
    pub role: String,
    /// `created`, `running`, `restarting` where it ends and is started again and again, `exited`, or `unreachable` where the
    /// node is lost.
    pub status: String,
    /// `healthy`, `unhealthy` or `unknown`.
    pub health: String,
}

/// What an instance may tell of itself and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceEventType {
    StartCompleted,
    Healthy,
    MemberAdded,
    MemberRemoved,
    MemberFailed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "event_type": "start_completed", "payload": { "port": 8080 } }))]
pub struct InstanceReport {
    pub event_type: InstanceEventType,
    /// Whatever belongs to it; what a field's name calls secret is hidden.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceReported {
    /// Of the event by which the report is told on.
    pub event_id: Uuid,
}

/// The instance lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub struct InstanceHeartbeat {
    /// The key of the workload that speaks, its `GPUAAS_KEY_ID`: two versions of an instance may stand side by side for a
    /// while. It must be the key that the caller's token was made with, and may be left out.
    #[serde(default)]
    #[schema(max_length = 128)]
    pub key_id: Option<String>,
}

/// What the instance wrote last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceLogs {
    /// Oldest first.
    pub lines: Vec<LogLine>,
    /// Whether lines that were asked for were left out, or one was cut.
    pub truncated: bool,
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

/// The Compose file that a stack runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "app_instance_id": "01970000-0000-7000-8000-000000000005", "version": "0.9.0", "generation": 1,
    "compose": "name: \"gpuaas-01970000-0000-7000-8000-000000000005\"\n"
}))]
pub struct RenderedInstance {
    pub app_instance_id: Uuid,
    pub version: String,
    /// Which launch of the instance it is of.
    pub generation: i64,
    /// YAML. Secrets are never in it, and what its names say is secret is hidden.
    pub compose: String,
}
