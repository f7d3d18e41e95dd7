//! Takes what an instance needs of its allocation and of its node's ports, under their locks. What it took is in the
//! ledger, so a second try finds it and the undo gives exactly that back.

use std::collections::BTreeMap;

use domain::manifest::RuntimeProfile;
use domain::placement::{self, Amounts, Candidate, Wanted};
use domain::{NodeStatus, StatusReason};
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::allocations::{self, Allocation};
use store::app_instance_artifacts::Standing;
use store::app_instances::{self, AppInstance, Why};
use store::resource_ledger::{self as ledger, Kind};
use store::{app_instance_releases, nodes};
use uuid::Uuid;

use super::{held, holder, unreadable};
use crate::Env;

/// Ports of a node that workloads are reached on.
const PORTS: std::ops::Range<u16> = 30_000..40_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReservePlacement {
    pub instance: Uuid,
}

/// Where the instance stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub node_id: Uuid,
    pub allocation_id: Uuid,
    /// Name of the port to the port on the node.
    pub ports: BTreeMap<String, u16>,
}

/// What the server decided that the instance gets.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Grant {
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
    pub host_port: Option<u16>,
}

impl Activity for ReservePlacement {
    const NAME: &'static str = "reserve_placement";
    const UNDO: bool = true;
    type Env = Env;
    type Output = Placement;

    async fn run(&self, env: &Env, call: &Call) -> Result<Placement, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let (allocation, instance) = self.lock(&mut tx).await?;
        let (grant, names) = wishes(&mut tx, &instance).await?;
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        if !taken.is_empty() {
            let numbers = taken.iter().filter(|held| held.kind == Kind::Port.as_str());
            let numbers = numbers.filter_map(|held| held.resource.rsplit(':').next()?.parse().ok());
            return Ok(placed(&allocation, &names, numbers.collect()));
        }
        if let Err(why) = fits(&mut tx, &allocation, grant).await? {
            app_instances::note_reason(&mut tx, instance.id, &why).await?;
            tx.commit().await?;
            return Err(Fault::terminal(why.reason.as_str(), why.message));
        }
        let who = holder(&instance, call);
        let from = ledger::allocation(allocation.id);
        for (kind, amount) in [
            (Kind::Gpu, grant.gpu_count),
            (Kind::CpuCore, grant.cpu_cores),
            (Kind::MemoryGib, grant.memory_gib),
        ] {
            let amount = i32::try_from(amount).map_err(|error| unreadable(&error))?;
            ledger::post(&mut tx, who, kind, &from, amount).await?;
        }
        let ports = free_ports(&mut tx, allocation.node_id, names.len(), grant.host_port).await?;
        for port in &ports {
            ledger::post(&mut tx, who, Kind::Port, &ledger::port_of(allocation.node_id, *port), 1).await?;
        }
        tx.commit().await?;
        Ok(placed(&allocation, &names, ports))
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        ledger::give_back(&mut tx, holder(&instance, call), &taken).await?;
        tx.commit().await?;
        Ok(())
    }
}

impl ReservePlacement {
    /// In the order of the tables: node, allocation, instance.
    async fn lock(&self, conn: &mut PgConnection) -> Result<(Allocation, AppInstance), Fault> {
        let gone = |what: &str| Fault::terminal("allocation_released", format!("the {what} is gone"));
        let instance = app_instances::find(conn, self.instance).await?.ok_or_else(|| gone("instance"))?;
        let id = instance.allocation_id.ok_or_else(|| gone("allocation"))?;
        let allocation = allocations::find(conn, id).await?.ok_or_else(|| gone("allocation"))?;
        nodes::find_locked(conn, allocation.node_id).await?.ok_or_else(|| gone("node"))?;
        let allocation = allocations::find_locked(conn, id).await?.ok_or_else(|| gone("allocation"))?;
        Ok((allocation, held(conn, self.instance).await?))
    }
}

/// What the instance gets, and the names of its ports in the profile's order.
async fn wishes(conn: &mut PgConnection, instance: &AppInstance) -> Result<(Grant, Vec<String>), Fault> {
    let grant: Grant =
        serde_json::from_value(instance.resources.clone()).map_err(|error| unreadable(&error))?;
    let release = app_instance_releases::find(conn, instance.id, Standing::Target).await?;
    let release = release.ok_or_else(|| unreadable(&"nothing was resolved for the instance"))?;
    let profile: RuntimeProfile =
        serde_json::from_value(release.profile).map_err(|error| unreadable(&error))?;
    let names = profile.ports.iter().enumerate().map(|(place, port)| port.endpoint_name(place)).collect();
    Ok((grant, names))
}

fn placed(allocation: &Allocation, names: &[String], mut ports: Vec<u16>) -> Placement {
    ports.sort_unstable();
    let ports = names.iter().cloned().zip(ports).collect();
    Placement { node_id: allocation.node_id, allocation_id: allocation.id, ports }
}

/// The same predicates as when the instance was asked for: much may have changed since.
async fn fits(
    conn: &mut PgConnection,
    allocation: &Allocation,
    grant: Grant,
) -> Result<Result<(), Why>, Fault> {
    let node = nodes::find(conn, allocation.node_id).await?;
    let candidate =
        candidate(conn, allocation, node.map_or(Ok(NodeStatus::Unavailable), |node| node.status())?).await?;
    let Grant { gpu_count, cpu_cores, memory_gib, .. } = grant;
    let wanted = Wanted { gpu_count, cpu_cores, memory_gib, ..Wanted::default() };
    let row = placement::matrix(&wanted, &[candidate]).remove(0);
    let broken: Vec<String> = row
        .predicates
        .iter()
        .filter(|predicate| !predicate.holds)
        .map(|p| format!("{}: {} where {} is required", p.name, p.actual, p.required))
        .collect();
    if broken.is_empty() {
        return Ok(Ok(()));
    }
    let message = format!("the allocation cannot carry the instance: {}", broken.join("; "));
    Ok(Err(Why { reason: StatusReason::InsufficientCapacity, message }))
}

/// An allocation with what is taken of it. Lock it first where the answer must hold.
pub async fn candidate(
    conn: &mut PgConnection,
    allocation: &Allocation,
    node: NodeStatus,
) -> sqlx::Result<Candidate> {
    let held = ledger::held_of(conn, &ledger::allocation(allocation.id)).await?;
    let of = |kind: Kind| {
        let sum = held.iter().find(|held| held.kind == kind.as_str()).map_or(0, |held| held.quantity);
        u32::try_from(sum).unwrap_or_default()
    };
    let count = |number: i32| u32::try_from(number).unwrap_or_default();
    Ok(Candidate {
        allocation_id: allocation.id,
        status: allocation.status()?,
        node,
        shape: allocation.shape()?,
        accelerator: allocation.accelerator.clone(),
        total: Amounts {
            gpu_count: count(allocation.gpu_count),
            cpu_cores: count(allocation.cpu_cores),
            memory_gib: count(allocation.memory_gib),
        },
        taken: Amounts {
            gpu_count: of(Kind::Gpu),
            cpu_cores: of(Kind::CpuCore),
            memory_gib: of(Kind::MemoryGib),
        },
        neighbours: count(app_instances::count_on_node(conn, allocation.node_id).await?),
    })
}

/// The lowest free ones; the first is the one that was asked for, if one was.
async fn free_ports(
    conn: &mut PgConnection,
    node: Uuid,
    wanted: usize,
    asked: Option<u16>,
) -> Result<Vec<u16>, Fault> {
    let mut ports = Vec::new();
    for port in asked.into_iter().chain(PORTS) {
        if ports.len() == wanted {
            break;
        }
        let free = !ledger::port_is_held(conn, node, port).await?;
        if free && !ports.contains(&port) {
            ports.push(port);
        } else if asked == Some(port) && ports.is_empty() {
            return Err(Fault::terminal("port_unavailable", format!("port {port} of the node is taken")));
        }
    }
    if ports.len() == wanted {
        Ok(ports)
    } else {
        Err(Fault::terminal("port_unavailable", "no port is free"))
    }
}
