//! What containers, networks and volumes of an instance are called and labelled. Names come from the instance alone, so
//! nothing else on a host can be touched by them; labels are how they are found again.

use uuid::Uuid;

pub const INSTANCE: &str = "gpuaas.instance";
pub const MEMBER: &str = "gpuaas.member";
pub const GENERATION: &str = "gpuaas.generation";
pub const CORRELATION: &str = "gpuaas.correlation_id";
/// `name=container port`, separated by commas: how names of ports are found again.
pub const PORTS: &str = "gpuaas.ports";
pub const DIGEST: &str = "gpuaas.digest";
/// How it is asked whether it serves, as JSON: an agent that starts anew goes on asking.
pub const PROBE: &str = "gpuaas.probe";
/// The files it was given, as JSON: a host that was started anew has lost them.
pub const FILES: &str = "gpuaas.files";

/// Nobody, whatever the image says.
pub const USER: &str = "65534:65534";
/// How many processes a container may have.
pub const PIDS: u32 = 4096;

pub fn container_name(instance: Uuid, member: &str, generation: i64) -> String {
    format!("gpuaas-{instance}-{member}-g{generation}")
}

/// Each instance has a network of its own. To Compose it is the name of the project too.
pub fn network_name(instance: Uuid) -> String {
    format!("gpuaas-{instance}")
}

/// The folder of a member at this place of its list; the same in every generation.
pub fn volume_name(instance: Uuid, member: &str, place: usize) -> String {
    format!("gpuaas-{instance}-{member}-{place}")
}
