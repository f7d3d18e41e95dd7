//! The logical parts of a Compose stack. The platform renders the file; nobody submits Compose YAML.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::artifact::ArtifactSlot;
use super::profile::Exposure;

const NAME: &str = "^[a-z][a-z0-9-]{0,62}$";
const NAME_MEANS: &str = "must be at most 63 lower-case letters, digits and `-`, beginning with a letter";

/// A way to render a Compose file that the platform knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Renderer {
    /// vLLM's server that speaks the `OpenAI` API.
    VllmOpenai,
}

/// The logical parts of the stack, all on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Its containers.
    #[schemars(length(min = 1, max = 20))]
    pub services: Vec<Service>,
    /// Where people and other apps reach it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub endpoints: Vec<Endpoint>,
    /// Folders that its containers are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub mounts: Vec<Mount>,
}

/// One container of the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopologyService)]
pub struct Service {
    /// What endpoints and mounts call it.
    #[schemars(regex(pattern = NAME), extend("patternErrorMessage" = NAME_MEANS))]
    pub name: String,
    /// The artifact whose image it runs.
    #[serde(default = "runtime")]
    #[schemars(length(min = 1, max = 63))]
    pub artifact: String,
    /// Whether it gets the instance's GPUs.
    #[serde(default)]
    pub gpu: bool,
    /// What it does, for people who review it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub description: Option<String>,
}

/// A port of a service that people or other apps reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopologyEndpoint)]
pub struct Endpoint {
    /// What `access` calls it.
    #[schemars(regex(pattern = NAME), extend("patternErrorMessage" = NAME_MEANS))]
    pub name: String,
    /// The service that listens.
    pub service: String,
    /// The number inside the container; one of the profile's ports.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Who reaches it.
    #[serde(default)]
    pub expose: Exposure,
}

/// A folder of a service: the bytes of an artifact, or scratch space that goes with the instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TopologyMount)]
pub struct Mount {
    /// The service that is given it.
    pub service: String,
    /// The blob it shows, read-only. Without one it is scratch space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub artifact: Option<String>,
    /// Where the service finds it.
    #[schemars(length(max = 255), regex(pattern = r"^/[A-Za-z0-9._/-]+$"))]
    #[schemars(extend("patternErrorMessage" = "must be an absolute path inside the container"))]
    pub path: String,
}

impl Service {
    /// The one that a stack has whose manifest names none.
    pub fn server() -> Service {
        Service { name: crate::compose::SERVER.to_owned(), artifact: runtime(), gpu: true, description: None }
    }
}

impl Renderer {
    pub const fn as_str(self) -> &'static str {
        match self {
            Renderer::VllmOpenai => "vllm_openai",
        }
    }
}

fn runtime() -> String {
    ArtifactSlot::RUNTIME.to_owned()
}
