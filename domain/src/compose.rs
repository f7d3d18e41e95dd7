//! Curated Compose stacks. A manifest names a renderer and its logical parts; the renderer makes a stack of them, from
//! approved digests, the resources of the launch and the platform's own decisions on ports and storage. The same stack is
//! what the node runs and what the Compose file says: nobody sends Compose YAML.

mod file;
#[cfg(test)]
mod tests;
mod vllm_openai;

pub use file::{compose_file, hash, shown};

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use crate::manifest::{Renderer, RuntimeProfile, Service as Part, Topology};
use crate::placement::Grant;

/// What a stack is made from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub instance_id: Uuid,
    pub generation: i64,
    pub profile: &'a RuntimeProfile,
    /// With its defaults filled in.
    pub config: &'a Value,
    pub grant: Grant,
    /// Artifact name to the image by digest.
    pub images: &'a BTreeMap<String, String>,
    /// Name of the profile's port to the port on the node.
    pub ports: &'a BTreeMap<String, u16>,
    /// The GPUs that it is given, as an engine knows them; none where they are simulated.
    pub gpus: &'a [String],
}

/// The parts of an instance, in the order in which they start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub instance_id: Uuid,
    pub generation: i64,
    pub services: Vec<Service>,
}

/// One container of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    /// The artifact whose image it runs.
    pub artifact: String,
    /// By digest.
    pub image: String,
    /// None runs the image's own.
    pub command: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub ports: Vec<Published>,
    pub gpu_count: u32,
    /// Which they are.
    pub gpus: Vec<String>,
    pub cpu_cores: u32,
    pub memory_gib: u32,
    /// Of its memory, what its processes may share.
    pub shared_memory_gib: Option<u32>,
    /// Folders of its own that go with the instance.
    pub scratch: Vec<String>,
    pub read_only_root: bool,
}

/// A port of a service that the node's loopback address leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub name: String,
    pub container: u16,
    pub host: u16,
}

/// Why a stack cannot be made, by the field of the launch that it lies at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer} {message}")]
pub struct Unrenderable {
    pub pointer: String,
    pub message: String,
}

/// The registry of renderers: one line each. Without a stack, everything that it cannot be made for.
pub fn render(renderer: Renderer, facts: &Facts<'_>) -> Result<Stack, Vec<Unrenderable>> {
    match renderer {
        Renderer::VllmOpenai => vllm_openai::render(facts),
    }
}

/// All that is wrong with a launch, before anything is resolved for it.
pub fn problems(profile: &RuntimeProfile, config: &Value, grant: Grant) -> Vec<Unrenderable> {
    let Some(renderer) = profile.renderer else { return Vec::new() };
    let images = parts(profile).into_iter().map(|part| (part.artifact, String::new())).collect();
    let (instance_id, ports) = (Uuid::nil(), BTreeMap::new());
    let facts = Facts {
        instance_id,
        generation: 0,
        profile,
        config,
        grant,
        images: &images,
        ports: &ports,
        gpus: &[],
    };
    render(renderer, &facts).err().unwrap_or_default()
}

/// What the stack is called whose manifest declares no topology.
pub const SERVER: &str = "server";

/// The parts that a profile declares, or the one server that it has without saying so.
fn parts(profile: &RuntimeProfile) -> Vec<Part> {
    let declared = profile.topology.as_ref().map(|topology| topology.services.clone());
    declared.filter(|services| !services.is_empty()).unwrap_or_else(|| vec![Part::server()])
}

/// The members that an instance of this profile has.
pub fn members(profile: &RuntimeProfile) -> Vec<String> {
    match profile.renderer {
        Some(_) => parts(profile).into_iter().map(|part| part.name).collect(),
        None => vec![MAIN.to_owned()],
    }
}

/// The member of an instance of one container.
pub const MAIN: &str = "main";

/// Which member listens on a port of the profile.
pub fn member_of(profile: &RuntimeProfile, port: Option<u16>) -> String {
    let endpoints = profile.topology.iter().flat_map(|topology: &Topology| &topology.endpoints);
    let named = endpoints.into_iter().find(|endpoint| port.is_none_or(|port| port == endpoint.port));
    let named = named.filter(|_| profile.renderer.is_some()).map(|endpoint| endpoint.service.clone());
    named.or_else(|| members(profile).into_iter().next()).unwrap_or_else(|| MAIN.to_owned())
}
