//! What a node tells of itself: what it has when it enrols, and what runs there with every heartbeat. An agent may be newer than the
//! platform, after that went back to an earlier release, so what it says besides is passed over.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::signed::Signed;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Inventory {
    #[schema(minimum = 1, maximum = 4096)]
    pub cpu_cores: u32,
    #[schema(minimum = 1, maximum = 65536)]
    pub memory_gib: u32,
    #[serde(default)]
    #[schema(max_items = 64)]
    pub gpus: Vec<Gpu>,
    /// What its programs are made for, such as `linux-x86_64`. Agents of earlier releases do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]{1,16}-[a-z0-9_]{1,16}$")]
    pub machine: Option<String>,
}

/// The name under which a release of the platform has the program for such a machine. A node that did not tell has what the
/// releases before were made for.
pub fn program_for(machine: Option<&str>) -> String {
    format!("gpuaas-{}", machine.unwrap_or("linux-x86_64"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Gpu {
    pub index: u32,
    /// The model, such as `H100-SXM5-80GB`.
    pub sku: String,
    /// The family, such as `nvidia`.
    pub accelerator: String,
    pub memory_gib: u32,
    /// By which it is known whatever its index is; none where its tool does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The version of the driver by which the machine speaks to it; none where its tool does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// It is not there: instances are placed as if it were, and are given none.
    #[serde(default)]
    pub simulated: bool,
}

impl Gpu {
    /// What an engine is asked for.
    pub fn device(&self) -> String {
        self.uuid.clone().unwrap_or_else(|| self.index.to_string())
    }
}

/// How busy one GPU is right now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuUse {
    pub index: u32,
    #[schema(maximum = 100)]
    pub busy_percent: u8,
    pub memory_used_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "sequence": 7, "agent_version": "0.1.0", "driver": "docker", "workloads": [] }))]
pub struct Heartbeat {
    /// Rises with every report of this node, over restarts too.
    #[schema(minimum = 1)]
    pub sequence: i64,
    pub agent_version: String,
    /// What looked: it must be what the node enrolled with. Agents of earlier releases do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(docker|simulated)$")]
    pub driver: Option<String>,
    #[serde(default)]
    #[schema(max_items = 4096)]
    pub workloads: Vec<WorkloadReport>,
    /// None where it has no GPU, or its tool does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub gpus: Vec<GpuUse>,
    /// Of the list of signers that it believes now. Agents of earlier releases do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyring_version: Option<i64>,
    /// Where people reach it, until the platform has heard that. It is what the node was started with; told nothing, it stays where
    /// it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub address: Option<String>,
    /// Whether it wants to hear which images it must keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_images: bool,
}

/// One container, as the engine shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadReport {
    pub instance_id: Uuid,
    pub member: String,
    pub generation: i64,
    pub state: WorkloadState,
    pub health: Health,
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadState {
    Created,
    Running,
    /// It ended by itself and the engine starts it again, and again.
    Restarting,
    Exited,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nobody asked it yet.
    Unknown,
    Healthy,
    Unhealthy,
}

impl Health {
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Unknown => "unknown",
            Health::Healthy => "healthy",
            Health::Unhealthy => "unhealthy",
        }
    }

    /// How an instance is whose members are like this: as the worst of them, and those that nobody asks do not count.
    pub fn of(members: impl IntoIterator<Item = Health>) -> Health {
        members.into_iter().fold(Health::Unknown, |all, one| match (all, one) {
            (Health::Unhealthy, _) | (_, Health::Unhealthy) => Health::Unhealthy,
            (Health::Healthy, _) | (_, Health::Healthy) => Health::Healthy,
            (Health::Unknown, Health::Unknown) => Health::Unknown,
        })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Since the container started.
    pub cpu_milliseconds: u64,
    pub memory_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// The signers to believe from now on, signed by one that is believed already.
    pub keyring: Signed,
    /// To a node whose list is older: the lists by which one signer handed over to the next, each signed by the one that did.
    /// The oldest comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handovers: Vec<Signed>,
    /// Where it was asked for: the digests of images that instances on the node run, or may return to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_images: Option<Vec<String>>,
    /// The number of the report that is kept. A node that is behind it has lost count, and goes on from here. Platforms of earlier
    /// releases do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_sequence: Option<i64>,
    pub heartbeat_seconds: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_agent_says_besides_is_passed_over() {
        let told = serde_json::json!({
            "sequence": 1, "agent_version": "9.0.0", "mood": "calm",
            "workloads": [{
                "instance_id": Uuid::nil(), "member": "main", "generation": 1, "state": "running", "health": "healthy",
                "usage": { "cpu_milliseconds": 1, "memory_bytes": 2, "watts": 3 }, "restarts": 4,
            }],
            "gpus": [{ "index": 0, "busy_percent": 5, "memory_used_bytes": 6, "watts": 7 }],
        });
        let beat: Heartbeat = serde_json::from_value(told).unwrap();
        assert_eq!((beat.workloads[0].usage.memory_bytes, beat.gpus[0].busy_percent), (2, 5));
    }
}
