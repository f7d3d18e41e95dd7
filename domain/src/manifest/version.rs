//! The second half of a manifest: what one version brings, needs and measures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::artifact::ArtifactSlot;
use super::optional::Optional;
use super::profile::RuntimeProfile;
use super::requirements::RuntimeRequirements;
use super::smoke::SmokeTest;
use super::worker::ExternalWorkerContract;
use crate::allocation::CapacityShape;
use crate::runtime::RuntimeBackend;

/// What one version brings, needs and measures. It cannot change once it leaves `draft`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManifestVersion)]
#[schemars(transform = Optional(&["runtime_backend"]))]
pub struct Version {
    /// Compared by its dotted numbers: `1.10.0` is newer than `1.9.0`.
    #[schemars(regex(pattern = super::number::PATTERN))]
    #[schemars(extend("patternErrorMessage" = "must be 1 to 64 letters, digits and `.+_-`, beginning with a letter or digit"))]
    pub version: String,
    /// Equal to the app's, which it is where nothing is said.
    pub runtime_backend: RuntimeBackend,
    /// What must be published before this version can be deployed.
    #[serde(default = "ArtifactSlot::only_runtime")]
    #[schemars(length(min = 1, max = 50))]
    pub artifacts: Vec<ArtifactSlot>,
    /// Which allocations can run it.
    #[serde(default)]
    pub compatibility: Compatibility,
    /// How the node agent runs it; required for `launchable_oci` and `docker_compose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_profile: Option<RuntimeProfile>,
    /// A JSON Schema (2020-12) of an instance's `placement_intent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_schema: Option<Map<String, Value>>,
    /// A JSON Schema (2020-12) of an instance's `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Map<String, Value>>,
    /// How forms show the two schemas: hints by the JSON Pointer of a value, kept out of the schemas themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui_hints: Option<Map<String, Value>>,
    /// Identities and credentials that an instance needs.
    #[serde(default)]
    pub runtime_requirements: RuntimeRequirements,
    /// What the app team's controller polls for; only for backends that the node agent does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_worker_contract: Option<ExternalWorkerContract>,
    /// What the app itself counts, besides what its allocation costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metering: Option<Metering>,
    /// Requests that a fresh instance must answer before the version is rolled out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub smoke: Vec<SmokeTest>,
    /// The `config` of the instance that `smoke` asks; nobody is there to be asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoke_config: Option<Map<String, Value>>,
    /// How the version is set up on a fresh machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
    /// What is new, for people who upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000))]
    pub release_notes: Option<String>,
    /// How to use a running instance, for people who deployed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000))]
    pub access_instructions: Option<String>,
    /// Which parts an instance has and where they run, for people who place it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000))]
    pub topology_notes: Option<String>,
}

/// Which allocations can run the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Compatibility {
    /// Shapes that will do; empty means any.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub requires_capacity_shape: Vec<CapacityShape>,
    /// GPUs without which the app cannot start.
    #[serde(default)]
    #[schemars(range(max = 64))]
    pub min_gpu_count: u32,
    /// Whether nothing else may run on the node.
    #[serde(default)]
    pub requires_exclusive_node: bool,
    /// Accelerators that will do, by vendor or model: `nvidia`, `amd`, `nvidia-h200`; empty means any.
    #[serde(default)]
    #[schemars(length(max = 20), inner(regex(pattern = super::artifact::VARIANT)), extend("uniqueItems" = true))]
    pub supported_accelerators: Vec<String>,
}

/// What the app itself counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = Optional(&["unit"]))]
pub struct Metering {
    /// What is counted.
    pub kind: MeteringKind,
    /// The unit of its usage events: the kind's own name unless said otherwise; `custom` must say it.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]{0,62}$"))]
    #[schemars(extend("patternErrorMessage" = "must be lower-case letters, digits and `_`, beginning with a letter"))]
    pub unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeteringKind {
    /// Seconds an instance ran; the platform counts them.
    SessionSeconds,
    /// Tokens in and out; the app reports them.
    Tokens,
    /// Requests answered; the app reports them.
    Requests,
    /// Seconds a GPU was held; the platform counts them.
    GpuSeconds,
    /// Something of the app's own; the app reports it.
    Custom,
}

/// How the version is set up on a fresh machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// Who or what sets it up.
    pub kind: BootstrapKind,
    /// What happens, for people who review it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20000))]
    pub description: Option<String>,
    /// How long it may take before the instance counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86400))]
    pub timeout_seconds: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BootstrapKind {
    /// The image is all there is.
    Image,
    /// The machine sets itself up at its first boot.
    CloudInit,
    /// The app team's controller logs in and sets it up.
    Controller,
}

impl MeteringKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            MeteringKind::SessionSeconds => "session_seconds",
            MeteringKind::Tokens => "tokens",
            MeteringKind::Requests => "requests",
            MeteringKind::GpuSeconds => "gpu_seconds",
            MeteringKind::Custom => "custom",
        }
    }
}
