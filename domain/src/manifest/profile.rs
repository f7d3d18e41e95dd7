//! How the node agent runs a version: one container, or a Compose stack that the platform renders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::artifact::{PLAIN_WORD, VARIANT};
use super::health::Health;
use super::resources::Resources;
use super::topology::{Renderer, Topology};

pub(super) const ENV_NAME: &str = "^[A-Za-z_][A-Za-z0-9_]{0,127}$";

/// How the node agent runs the version. Containers run by digest, unprivileged, without host mounts, host network or
/// added capabilities; there are no fields to ask for those.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeProfile {
    /// Equal to the backend.
    pub kind: ProfileKind,
    /// What the container runs instead of the image's own command; handed over word by word, never through a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 4096)))]
    pub command: Vec<String>,
    /// Environment variables that are the same for every instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub env: Vec<EnvVar>,
    /// Ports the app listens on. Each gets an address on the node that only tunnels and gateways reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub ports: Vec<Port>,
    /// How the platform sees that the app is ready and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// What an instance gets, and within which bounds a launch may ask for more or less.
    #[serde(default)]
    pub resources: Resources,
    /// Which fields of `config` become words of the command or environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub launch_parameters: Vec<LaunchParameter>,
    /// Python packages that every instance installs: a name, extras and version clauses each. A list, even an empty
    /// one, means that a launch may add its own; together they are at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 200)))]
    pub packages: Option<Vec<String>>,
    /// Images for different nodes that a launch may choose from by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub variants: Vec<Variant>,
    /// Whether the container's root can be read-only; `/tmp` stays writable.
    #[serde(default)]
    pub read_only_root: bool,
    /// Who renders the Compose file; `docker_compose` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renderer: Option<Renderer>,
    /// The logical parts of the stack; `docker_compose` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileKind {
    /// One container.
    LaunchableOci,
    /// A Compose stack that the platform renders.
    DockerCompose,
}

/// One environment variable with a value that is no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvVar {
    /// Not one of the platform's own, which begin with `GPUAAS_`.
    #[schemars(regex(pattern = ENV_NAME))]
    #[schemars(extend("patternErrorMessage" = "must be letters, digits and `_`, not beginning with a digit"))]
    pub name: String,
    /// Everybody who reads the catalog sees it. Secrets are `runtime_requirements.credential_classes`.
    #[schemars(length(max = 32768))]
    pub value: String,
}

/// A port the app listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// What `access` calls it; `http`, or `port-` and its number, unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z][a-z0-9-]{0,30}$"))]
    #[schemars(extend("patternErrorMessage" = "must be lower-case letters, digits and `-`, beginning with a letter"))]
    pub name: Option<String>,
    /// The number inside the container.
    #[schemars(range(min = 1, max = 65535))]
    pub container: u16,
    /// Who reaches it.
    #[serde(default)]
    pub expose: Exposure,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// Reached on the node itself or through a tunnel.
    #[default]
    Private,
    /// Reached through the platform's gateway too.
    EmbeddedUiGateway,
}

/// A field of `config` on its way into the container: either `env` or `argument`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchParameter {
    /// The name of a field at the top of `config_schema`.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The environment variable that carries its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = ENV_NAME))]
    #[schemars(extend("patternErrorMessage" = "must be letters, digits and `_`, not beginning with a digit"))]
    pub env: Option<String>,
    /// The word of the command that stands before its value, such as `--max-model-len`. A field that is true is the
    /// word alone, one that is false or absent is nothing, a list repeats the word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^-{1,2}[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"))]
    #[schemars(extend("patternErrorMessage" = "must be an option such as `--model`"))]
    pub argument: Option<String>,
}

/// An image for some nodes; an artifact of the same `variant` carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ImageVariant)]
pub struct Variant {
    /// What launches and artifacts call it, such as `cpu` or `nvidia-h200`.
    #[schemars(regex(pattern = VARIANT), extend("patternErrorMessage" = PLAIN_WORD))]
    pub name: String,
    /// Accelerators it runs on; empty means none is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(regex(pattern = VARIANT)), extend("uniqueItems" = true))]
    pub accelerators: Vec<String>,
    /// What is in it, for people who choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub description: Option<String>,
}

impl ProfileKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            ProfileKind::LaunchableOci => "launchable_oci",
            ProfileKind::DockerCompose => "docker_compose",
        }
    }
}

impl Port {
    /// What `access` calls it; the first port without a name is `http`.
    pub fn endpoint_name(&self, place: usize) -> String {
        match (&self.name, place) {
            (Some(name), _) => name.clone(),
            (None, 0) => "http".to_owned(),
            (None, _) => format!("port-{}", self.container),
        }
    }
}
