//! A workload as a node runs it: one container, by digest, within limits. There is no way to say privileged, host network,
//! host path, capability or tag here, so nobody can ask for one.

use std::collections::BTreeMap;

use domain::{compose, container};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub instance_id: Uuid,
    /// Which part of the instance; an instance of one container has the member `main`.
    pub member: String,
    pub generation: i64,
    pub correlation_id: String,
    pub image: Image,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub ports: Vec<Port>,
    pub resources: Resources,
    #[serde(default)]
    pub read_only_root: bool,
    /// Small texts that the workload finds in [`Workload::FILES`], by name: in memory, and not for it to change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Folders of its own, by their paths inside: they stay from one generation to the next and go with the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<String>,
    /// Of its memory, what its processes may share; the engine's own measure unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory_gib: Option<u32>,
    /// The GPUs that it is given and nobody else has, by the names an engine knows them by. Simulated ones have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// How to tell that it serves, for as long as it runs; none where nobody asks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The hash of the Compose file that it is a part of; none where it stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Workload {
    pub const MAIN: &'static str = compose::MAIN;
    pub const FILES: &'static str = "/run/gpuaas";
    /// The packages to install, as a JSON list of PEP 508 specifiers.
    pub const PACKAGES: &'static str = "packages.json";

    /// Comes from the instance alone, so nothing else on the host can be touched by it.
    pub fn container_name(&self) -> String {
        container::container_name(self.instance_id, &self.member, self.generation)
    }

    /// Each instance has a network of its own.
    pub fn network_name(instance_id: Uuid) -> String {
        container::network_name(instance_id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// `host:port` of the registry; none means that the image must be on the node already, under its own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    pub repository: String,
    /// `sha256:…`; there are no tags here.
    pub digest: String,
}

impl Image {
    pub fn reference(&self) -> String {
        match &self.registry {
            Some(registry) => format!("{registry}/{}@{}", self.repository, self.digest),
            None => self.digest.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    pub name: String,
    pub container: u16,
    /// On the node's loopback address; 0 lets the node choose.
    #[serde(default)]
    pub host: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
    pub pids: u32,
}

/// How to tell that a workload serves. The agent asks it from outside, so the image needs no tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub kind: ProbeKind,
    /// For `http`.
    #[serde(default)]
    pub path: String,
    /// The port inside the container.
    pub port: u16,
    pub interval_seconds: u32,
    pub timeout_seconds: u32,
    /// How long it may take to begin serving.
    pub grace_seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    Http,
    Tcp,
}

/// Which of an instance's workloads are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generations {
    Only(i64),
    /// This one and all before it.
    UpTo(i64),
}

impl Generations {
    pub const fn contain(self, generation: i64) -> bool {
        match self {
            Generations::Only(only) => generation == only,
            Generations::UpTo(last) => generation <= last,
        }
    }

    /// Whether all of the others are among these.
    pub const fn cover(self, others: Generations) -> bool {
        match (self, others) {
            (_, Generations::Only(only)) => self.contain(only),
            (Generations::UpTo(last), Generations::UpTo(other)) => other <= last,
            (Generations::Only(_), Generations::UpTo(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_by_digest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let image = Image {
            registry: Some("127.0.0.1:5000".into()),
            repository: "gpuaas/apps/p/a".into(),
            digest: digest.clone(),
        };
        assert_eq!(image.reference(), format!("127.0.0.1:5000/gpuaas/apps/p/a@{digest}"));
        assert_eq!(Image { registry: None, ..image }.reference(), digest);
    }

    #[test]
    fn what_a_workload_may_not_ask_for_cannot_be_said() {
        let asked = serde_json::json!({
            "instance_id": Uuid::nil(), "member": "main", "generation": 1, "correlation_id": "c",
            "image": { "repository": "r", "digest": "d" },
            "resources": { "gpu_count": 0, "cpu_cores": 1, "memory_gib": 1, "pids": 64 },
        });
        assert!(serde_json::from_value::<Workload>(asked.clone()).is_ok());
        for word in ["privileged", "network_mode", "volumes", "cap_add", "binds", "devices"] {
            let mut asked = asked.clone();
            asked[word] = serde_json::json!(true);
            assert!(serde_json::from_value::<Workload>(asked).is_err(), "{word}");
        }
    }

    #[test]
    fn generations_are_counted_from_below() {
        assert!(Generations::UpTo(3).contain(1) && Generations::UpTo(3).contain(3));
        assert!(!Generations::UpTo(3).contain(4));
        assert!(Generations::Only(3).contain(3) && !Generations::Only(3).contain(2));
        assert!(
            Generations::UpTo(3).cover(Generations::UpTo(2))
                && Generations::UpTo(3).cover(Generations::Only(3))
        );
        assert!(
            !Generations::UpTo(3).cover(Generations::UpTo(4))
                && !Generations::Only(3).cover(Generations::UpTo(3))
        );
    }
}
