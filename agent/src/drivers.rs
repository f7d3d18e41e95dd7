//! What the agent needs of a container engine. Every driver is held to the same contract, in `contract.rs`.

pub(crate) mod docker;
mod network;
pub(crate) mod simulated;

pub use network::Network;

use std::collections::BTreeMap;
use std::future::Future;

use chrono::{DateTime, Utc};
use domain::StatusReason;
use node_protocol::{
    ControlAction, Generations, GpuUse, Health, Image, Launched, Probe, Secrets, Usage, Workload,
    WorkloadReport, WorkloadState,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::tail::Tail;
use crate::{health, inventory};

/// Why a driver could not do something, in words for a person. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DriverFault {
    pub reason: StatusReason,
    pub message: String,
}

impl DriverFault {
    pub fn new(reason: StatusReason, message: impl Into<String>) -> DriverFault {
        DriverFault { reason, message: message.into() }
    }
}

/// What a task tells while it is under way, and what it is told: how far its pull is, and that a removal overtook it.
#[derive(Debug)]
pub struct Told {
    pulled: watch::Sender<(u64, u64)>,
    overtaken: CancellationToken,
}

impl Told {
    pub fn new(overtaken: CancellationToken) -> (Told, watch::Receiver<(u64, u64)>) {
        let (pulled, news) = watch::channel((0, 0));
        (Told { pulled, overtaken }, news)
    }

    /// Bytes done, and bytes in all as far as they are known.
    pub fn pulled(&self, done: u64, total: u64) {
        self.pulled.send_replace((done, total));
    }

    /// Ends when a removal came that makes the task pointless. Listen where nothing of the engine's is half done.
    pub async fn overtaken(&self) -> DriverFault {
        self.overtaken.cancelled().await;
        DriverFault::new(StatusReason::TaskRejected, "a removal came before the task was done")
    }
}

/// One of our containers, as the engine shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub instance_id: Uuid,
    pub member: String,
    pub generation: i64,
    pub name: String,
    pub digest: String,
    pub state: WorkloadState,
    /// Name of the port to the port on the node's loopback address.
    pub ports: BTreeMap<String, u16>,
    /// Port inside the container to the port on the node's loopback address.
    pub bound: BTreeMap<u16, u16>,
    /// How it is asked whether it serves.
    pub probe: Option<Probe>,
}

impl Seen {
    /// Where a port of the container is asked; its lowest one unless one is named.
    pub fn asked_on(&self, container: Option<u16>) -> Option<u16> {
        match container {
            Some(port) => self.bound.get(&port).copied(),
            None => self.bound.values().next().copied(),
        }
    }

    pub fn report(self, health: Health, usage: Usage) -> WorkloadReport {
        WorkloadReport {
            instance_id: self.instance_id,
            member: self.member,
            generation: self.generation,
            state: self.state,
            health,
            usage,
        }
    }
}

pub trait Driver: Send + Sync + 'static {
    /// `docker` or `simulated`; told wherever the node is.
    fn name(&self) -> &'static str;

    /// The own network of the workload's instance: where there is none yet, one of the node's reserve, or one that is made.
    /// `None` where the engine has no networks.
    fn network(
        &self,
        node: Uuid,
        workload: &Workload,
    ) -> impl Future<Output = Result<Option<Network>, DriverFault>> + Send;

    /// The networks of instances that are there.
    fn networks(&self) -> impl Future<Output = Result<Vec<(Uuid, Network)>, DriverFault>> + Send;

    /// One step towards so many networks in the node's reserve, made ahead and nobody's: makes one or takes one away. True once
    /// there is nothing to do.
    fn stock(&self, _: Uuid, _: usize) -> impl Future<Output = Result<bool, DriverFault>> + Send {
        std::future::ready(Ok(true))
    }

    /// Pulls and starts, on the instance's network, which is there. Doing it again finds what is there: one name, one container.
    /// A pull that is overtaken is given up.
    fn launch(
        &self,
        workload: &Workload,
        secrets: &Secrets,
        told: &Told,
    ) -> impl Future<Output = Result<Launched, DriverFault>> + Send;

    fn control(
        &self,
        instance: Uuid,
        generation: i64,
        action: ControlAction,
    ) -> impl Future<Output = Result<(), DriverFault>> + Send;

    /// Takes away what is there of these generations, with the instance's network when it ends for good. Answers the names
    /// of what went; taking away nothing is well.
    fn remove(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> impl Future<Output = Result<Vec<String>, DriverFault>> + Send;

    /// Everything of ours that the engine has, running or not.
    fn seen(&self) -> impl Future<Output = Result<Vec<Seen>, DriverFault>> + Send;

    /// Whether a workload that runs answers its probe now.
    fn serves(&self, seen: &Seen, probe: &Probe) -> impl Future<Output = bool> + Send {
        let port = seen.asked_on(Some(probe.port));
        async move {
            match port {
                Some(port) => health::serves(probe, port).await,
                // An engine binds no ports of what does not run.
                None => false,
            }
        }
    }

    /// What a workload that runs uses right now.
    fn usage(&self, seen: &Seen) -> impl Future<Output = Usage> + Send;

    /// How busy the machine's GPUs are.
    fn gpu_use(&self) -> impl Future<Output = Vec<GpuUse>> + Send {
        inventory::gpu_use()
    }

    /// Takes away an image that no container needs. False where it stays, as where one does or there are none to be had.
    fn remove_image(&self, _: &Image) -> impl Future<Output = Result<bool, DriverFault>> + Send {
        std::future::ready(Ok(false))
    }

    /// What is left of an instance besides containers: networks by name, and files by path.
    fn leftovers(&self, instance: Uuid) -> impl Future<Output = Result<Vec<String>, DriverFault>> + Send;

    /// The last lines that the newest workload of a member wrote, after a moment if one is named; none where nothing is.
    fn logs(
        &self,
        instance: Uuid,
        member: &str,
        lines: u32,
        since: Option<DateTime<Utc>>,
    ) -> impl Future<Output = Result<Tail, DriverFault>> + Send;
}
