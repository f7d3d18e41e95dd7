//! The Docker driver. A container runs by digest, without privileges, capabilities or host paths, within limits, on a
//! network of its instance alone, reachable on the node's loopback address only.

mod control;
mod create;
mod logs;
mod look;
mod networks;
mod pull;
mod remove;
mod scratch;
mod subnets;
mod volumes;

pub use subnets::Subnet;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum, PortBinding as Binding};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveImageOptions, StatsOptionsBuilder,
};
use chrono::{DateTime, Utc};
use domain::StatusReason;
use domain::container::{DIGEST, GENERATION, INSTANCE, MEMBER, PORTS, PROBE};
use futures::StreamExt;
use node_protocol::{ControlAction, Generations, Image, Launched, Secrets, Usage, Workload, WorkloadState};
use uuid::Uuid;

use super::{Driver, DriverFault, Network, Seen, Told};
use crate::tail::Tail;

/// How long a container has to end by itself before it is ended.
const STOP_SECONDS: i32 = 10;

#[derive(Clone, Debug)]
pub struct Docker {
    client: Client,
    pool: Subnet,
    known: Arc<Mutex<networks::Known>>,
}

impl Docker {
    /// `unix:///var/run/docker.sock`, or another address that Docker's own client would take.
    pub async fn connect(host: &str) -> Result<Docker, DriverFault> {
        let client =
            Client::connect_with_host(host).map_err(|error| fault("connect to the engine", &error))?;
        let client = client.negotiate_version().await.map_err(|error| fault("talk to the engine", &error))?;
        Ok(Docker { client, pool: Subnet::POOL, known: Arc::default() })
    }

    /// Where the networks of instances are from now on.
    #[must_use]
    pub fn with_pool(self, pool: Subnet) -> Docker {
        Docker { pool, ..self }
    }

    /// What the engine says of itself, for people.
    pub async fn version(&self) -> Result<String, DriverFault> {
        let version =
            self.client.version().await.map_err(|error| fault("ask the engine's version", &error))?;
        Ok(version.version.unwrap_or_default())
    }

    /// By which runtime the engine runs what asks for none.
    pub async fn usual_runtime(&self) -> Result<Option<String>, DriverFault> {
        let about = self.client.info().await.map_err(|error| fault("ask what the engine can do", &error))?;
        Ok(about.default_runtime)
    }

    /// Whether the engine can hand NVIDIA's GPUs to containers: it was told of their runtime, or finds them by its own means.
    pub async fn knows_nvidia(&self) -> Result<bool, DriverFault> {
        let about = self.client.info().await.map_err(|error| fault("ask what the engine can do", &error))?;
        Ok(about.runtimes.is_some_and(|runtimes| runtimes.contains_key("nvidia")))
    }

    /// One name, one container: a second create meets the first. Answers the id of one that was made just now.
    async fn ensure_container(
        &self,
        workload: &Workload,
        secrets: &Secrets,
    ) -> Result<Option<String>, DriverFault> {
        let name = workload.container_name();
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let body = create::body(workload, secrets, self.joined(workload.instance_id));
        match self.client.create_container(Some(options), body).await {
            Ok(made) => Ok(Some(made.id)),
            Err(error) if status(&error) == Some(409) => Ok(None),
            Err(error) => Err(fault("make the container", &error)),
        }
    }

    async fn start(&self, name: &str) -> Result<(), DriverFault> {
        let started = self.client.start_container(name, None).await;
        started.map_err(|error| match &error {
            Error::DockerResponseServerError { message, .. } if port_is_taken(message) => {
                DriverFault::new(StatusReason::PortUnavailable, "the port is taken on this node")
            }
            _ => fault("start the container", &error),
        })
    }

    /// The container that there is, and where its ports are.
    async fn bound(&self, workload: &Workload) -> Result<(String, BTreeMap<String, u16>), DriverFault> {
        let shown = self.client.inspect_container(&workload.container_name(), None).await;
        let shown = shown.map_err(|error| fault("look at the container", &error))?;
        let bindings = shown.network_settings.and_then(|network| network.ports).unwrap_or_default();
        let ports = workload.ports.iter().filter_map(|port| {
            let bound = bindings.get(&format!("{}/tcp", port.container))?.as_ref()?;
            Some((port.name.clone(), bound.iter().find_map(host_port)?))
        });
        Ok((shown.id.unwrap_or_default(), ports.collect()))
    }

    async fn containers(&self, instance: Option<Uuid>) -> Result<Vec<ContainerSummary>, DriverFault> {
        let label = instance.map_or_else(|| INSTANCE.to_owned(), |instance| format!("{INSTANCE}={instance}"));
        self.list_containers(Some(&label)).await
    }

    /// Running or not; everybody's unless a label is named.
    async fn list_containers(&self, label: Option<&str>) -> Result<Vec<ContainerSummary>, DriverFault> {
        let filters: HashMap<&str, Vec<&str>> =
            label.map(|label| ("label", vec![label])).into_iter().collect();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        self.client.list_containers(Some(options)).await.map_err(|error| fault("list the containers", &error))
    }
}

impl Driver for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    async fn network(&self, node: Uuid, workload: &Workload) -> Result<Option<Network>, DriverFault> {
        self.ensure_network(node, workload).await.map(Some)
    }

    async fn networks(&self) -> Result<Vec<(Uuid, Network)>, DriverFault> {
        let owned = self.owned(&self.look().await?).into_iter();
        Ok(owned.filter_map(|(whose, network)| Some((whose, networks::read(&network)?))).collect())
    }

    async fn stock(&self, node: Uuid, wanted: usize) -> Result<bool, DriverFault> {
        self.step_to_reserve(node, wanted).await
    }

    async fn launch(
        &self,
        workload: &Workload,
        secrets: &Secrets,
        told: &Told,
    ) -> Result<Launched, DriverFault> {
        self.ensure_image(&workload.image, secrets.pull.as_ref(), told).await?;
        scratch::write(workload).map_err(|error| disk("write the container's files", &error))?;
        self.ensure_volumes(workload).await?;
        let made = self.ensure_container(workload, secrets).await?;
        self.start(&workload.container_name()).await?;
        let (container_id, ports) = match made {
            // It runs on the ports it was made for, or it did not start.
            Some(id) if workload.ports.iter().all(|port| port.host != 0) => (id, asked_for(workload)),
            _ => self.bound(workload).await?,
        };
        Ok(Launched {
            member: workload.member.clone(),
            container_id,
            digest: workload.image.digest.clone(),
            ports,
            serves: false,
        })
    }

    async fn control(
        &self,
        instance: Uuid,
        generation: i64,
        action: ControlAction,
    ) -> Result<(), DriverFault> {
        self.act_on(instance, generation, action).await
    }

    async fn remove(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> Result<Vec<String>, DriverFault> {
        self.take_away(instance, generations, for_good).await
    }

    async fn seen(&self) -> Result<Vec<Seen>, DriverFault> {
        Ok(self.containers(None).await?.iter().filter_map(seen).collect())
    }

    async fn usage(&self, seen: &Seen) -> Usage {
        let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        // A container that ended meanwhile uses nothing.
        let Some(Ok(stats)) = self.client.stats(&seen.name, Some(options)).next().await else {
            return Usage::default();
        };
        let cpu = stats.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|cpu| cpu.total_usage);
        Usage {
            cpu_milliseconds: cpu.unwrap_or_default() / 1_000_000,
            memory_bytes: stats.memory_stats.and_then(|memory| memory.usage).unwrap_or_default(),
        }
    }

    async fn remove_image(&self, image: &Image) -> Result<bool, DriverFault> {
        match self.client.remove_image(&image.reference(), None::<RemoveImageOptions>, None).await {
            Ok(_) => Ok(true),
            Err(error) if status(&error) == Some(404) => Ok(true),
            Err(error) if status(&error) == Some(409) => Ok(false),
            Err(error) => Err(fault("remove the image", &error)),
        }
    }

    async fn leftovers(&self, instance: Uuid) -> Result<Vec<String>, DriverFault> {
        let networks = self.owned(&self.look().await?).into_iter().filter(|(whose, _)| *whose == instance);
        let volumes = self.volumes(instance).await?;
        let networks = networks.filter_map(|(_, network)| network.name);
        let files = scratch::of(instance).map_err(|error| disk("look at the container's files", &error))?;
        Ok(networks.chain(files).chain(volumes).collect())
    }

    async fn logs(
        &self,
        instance: Uuid,
        member: &str,
        lines: u32,
        since: Option<DateTime<Utc>>,
    ) -> Result<Tail, DriverFault> {
        let all = self.containers(Some(instance)).await?;
        let newest = all.iter().filter_map(seen).filter(|seen| seen.member == member);
        match newest.max_by_key(|seen| seen.generation) {
            Some(newest) => self.tail_of(&newest.name, lines, since).await,
            None => Ok(Tail::of(lines)),
        }
    }
}

/// One of ours by its labels; a container whose labels cannot be read is nobody's to touch.
fn seen(summary: &ContainerSummary) -> Option<Seen> {
    let labels = summary.labels.as_ref()?;
    let name = summary.names.as_ref()?.first()?.trim_start_matches('/').to_owned();
    Some(Seen {
        instance_id: labels.get(INSTANCE)?.parse().ok()?,
        member: labels.get(MEMBER)?.clone(),
        generation: labels.get(GENERATION)?.parse().ok()?,
        name,
        digest: labels.get(DIGEST).cloned().unwrap_or_default(),
        state: match summary.state {
            Some(ContainerSummaryStateEnum::RUNNING) => WorkloadState::Running,
            Some(ContainerSummaryStateEnum::RESTARTING) => WorkloadState::Restarting,
            Some(ContainerSummaryStateEnum::CREATED) => WorkloadState::Created,
            _ => WorkloadState::Exited,
        },
        ports: ports(summary, labels.get(PORTS).map(String::as_str).unwrap_or_default()),
        bound: bound(summary),
        probe: labels.get(PROBE).and_then(|probe| serde_json::from_str(probe).ok()),
    })
}

fn asked_for(workload: &Workload) -> BTreeMap<String, u16> {
    workload.ports.iter().map(|port| (port.name.clone(), port.host)).collect()
}

fn ports(summary: &ContainerSummary, named: &str) -> BTreeMap<String, u16> {
    let bound = bound(summary);
    named
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(name, container)| Some((name.to_owned(), *bound.get(&container.parse().ok()?)?)))
        .collect()
}

fn bound(summary: &ContainerSummary) -> BTreeMap<u16, u16> {
    let ports = summary.ports.as_deref().unwrap_or_default();
    ports.iter().filter_map(|port| Some((port.private_port, port.public_port?))).collect()
}

fn host_port(binding: &Binding) -> Option<u16> {
    binding.host_port.as_deref()?.parse().ok()
}

/// The engine knows of its own containers' ports, and only the kernel of everybody else's.
fn port_is_taken(message: &str) -> bool {
    message.contains("port is already allocated") || message.contains("address already in use")
}

fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Stopping what stands still (304) and removing what is gone (404) is what was wanted.
fn gone_is_well(done: Result<(), Error>, what: &str) -> Result<(), DriverFault> {
    match done {
        Err(error) if !matches!(status(&error), Some(304 | 404)) => Err(fault(what, &error)),
        _ => Ok(()),
    }
}

fn disk(what: &str, error: &std::io::Error) -> DriverFault {
    DriverFault::new(StatusReason::Internal, format!("could not {what}: {error}"))
}

fn fault(what: &str, error: &Error) -> DriverFault {
    DriverFault::new(StatusReason::Internal, format!("could not {what}: {error}"))
}
