//! Takes what an instance needs of its allocation and of its node's ports, under their locks. What it took is in the
//! ledger, so a second try finds it and the undo gives exactly that back.

use std::collections::BTreeMap;

use domain::StatusReason;
use domain::manifest::{Compatibility, Manifest, RuntimeProfile};
use domain::placement::{self, Grant, Strategy, Wanted};
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::allocations::{self, Allocation};
use store::app_instance_artifacts::Standing;
use store::app_instances::{self, AppInstance, Why};
use store::deployment::{Share, candidate, own_share};
use store::resource_ledger::{self as ledger, Held, Kind};
use store::{Refused, app_instance_releases, app_versions, node_tasks, nodes};
use uuid::Uuid;

use super::{held, holder, unreadable};
use crate::Env;

/// Ports of a node that workloads are reached on. From 32768 on the kernel gives them to whoever calls out.
const PORTS: std::ops::Range<u16> = 30_000..32_768;

/// What a placement is made of.
const KINDS: [Kind; 4] = [Kind::Gpu, Kind::CpuCore, Kind::MemoryGib, Kind::Port];

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReservePlacement {
    pub instance: Uuid,
    /// Whether it stands beside what runs already, or takes that one's share over.
    pub strategy: Strategy,
}

/// Where the instance stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub node_id: Uuid,
    pub allocation_id: Uuid,
    /// Name of the port to the port on the node.
    pub ports: BTreeMap<String, u16>,
    /// Which GPUs of the node, by their index there.
    #[serde(default)]
    pub gpus: Vec<i32>,
}

impl Activity for ReservePlacement {
    const NAME: &'static str = "reserve_placement";
    const UNDO: bool = true;
    type Env = Env;
    type Output = Placement;

    async fn run(&self, env: &Env, call: &Call) -> Result<Placement, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let (allocation, instance) = self.lock(&mut tx).await?;
        let Wishes { grant, names, compatibility } = wishes(&mut tx, &instance).await?;
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        let old = match self.strategy {
            Strategy::SideBySide => Share::default(),
            Strategy::StopThenStart => judged(own_share(&mut tx, &instance).await)?,
        };
        // Its own fixed port is what it keeps.
        let kept = grant.host_port.filter(|port| old.grant.host_port == Some(*port));
        if let Some(ports) = ports_among(&taken) {
            let new = gpus_among(&allocation, &taken);
            let gpus = first_of(&old.gpus, &new, grant.gpu_count)?;
            return Ok(placed(&allocation, &names, kept.or(grant.host_port), ports, gpus));
        }
        let wanted = Wanted { exclusive: compatibility.requires_exclusive_node, ..wanted(grant) };
        if let Err(why) = fits(&mut tx, &allocation, &wanted, (instance.id, old.grant)).await? {
            app_instances::note_reason(&mut tx, instance.id, &why).await?;
            tx.commit().await?;
            return Err(Fault::terminal(why.reason.as_str(), why.message));
        }
        let (who, from) = (holder(&instance, call), ledger::allocation(allocation.id));
        // What the old one has beyond this stays its own until its node has shown it gone: it may have to return.
        let gpus = free_gpus(&mut tx, &allocation, &old.gpus, grant.gpu_count).await?;
        for index in gpus.iter().filter(|index| !old.gpus.contains(index)) {
            ledger::post(&mut tx, who, Kind::Gpu, &ledger::gpu_of(allocation.id, *index), 1).await?;
        }
        for (kind, wanted, has) in [
            (Kind::CpuCore, grant.cpu_cores, old.grant.cpu_cores),
            (Kind::MemoryGib, grant.memory_gib, old.grant.memory_gib),
        ] {
            let more = i32::try_from(wanted.saturating_sub(has)).map_err(|error| unreadable(&error))?;
            ledger::post(&mut tx, who, kind, &from, more).await?;
        }
        let asked = grant.host_port.filter(|_| kept.is_none());
        let missing = names.len().saturating_sub(usize::from(kept.is_some()));
        let ports = free_ports(&mut tx, allocation.node_id, missing, asked).await?;
        for port in &ports {
            ledger::post(&mut tx, who, Kind::Port, &ledger::port_of(allocation.node_id, *port), 1).await?;
        }
        tx.commit().await?;
        Ok(placed(&allocation, &names, kept.or(grant.host_port), ports, gpus))
    }

    /// Where the run's workload is still on the books, a lost node may be running it: it keeps its place until that shows it gone.
    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        if taken.iter().all(|held| held.kind != Kind::Workload.as_str()) {
            ledger::give_back_of_run(&mut tx, holder(&instance, call), &KINDS).await?;
        }
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

fn judged<T>(judged: Result<T, Refused>) -> Result<T, Fault> {
    judged.map_err(|refused| match refused {
        Refused::Database(error) => error.into(),
        other => unreadable(&format!("{other:?}")),
    })
}

struct Wishes {
    /// What the instance gets.
    grant: Grant,
    /// Of its ports, in the profile's order.
    names: Vec<String>,
    /// What its version asks of the place.
    compatibility: Compatibility,
}

async fn wishes(conn: &mut PgConnection, instance: &AppInstance) -> Result<Wishes, Fault> {
    let release = app_instance_releases::find(conn, instance.id, Standing::Target).await?;
    let release = release.ok_or_else(|| unreadable(&"nothing was resolved for the instance"))?;
    let grant: Grant = serde_json::from_value(release.resources).map_err(|error| unreadable(&error))?;
    let profile: RuntimeProfile =
        serde_json::from_value(release.profile).map_err(|error| unreadable(&error))?;
    let names = profile.ports.iter().enumerate().map(|(place, port)| port.endpoint_name(place)).collect();
    let version = app_versions::find(conn, &instance.app_slug, &release.version).await?;
    let version = version.ok_or_else(|| unreadable(&"the version is gone"))?;
    let manifest: Manifest = serde_json::from_value(version.manifest).map_err(|error| unreadable(&error))?;
    Ok(Wishes { grant, names, compatibility: manifest.version.compatibility })
}

/// The ports that an earlier try took; `None` when there was none.
fn ports_among(taken: &[Held]) -> Option<Vec<u16>> {
    if !taken.iter().any(|held| KINDS.iter().any(|kind| kind.as_str() == held.kind)) {
        return None;
    }
    let ports = taken.iter().filter(|held| held.kind == Kind::Port.as_str());
    Some(ports.filter_map(|held| held.resource.rsplit(':').next()?.parse().ok()).collect())
}

/// The port that was asked for, taken now or kept, is the first one's; the rest go up.
fn placed(
    allocation: &Allocation,
    names: &[String],
    first: Option<u16>,
    mut ports: Vec<u16>,
    gpus: Vec<i32>,
) -> Placement {
    ports.retain(|port| Some(*port) != first);
    ports.sort_unstable();
    let ports = names.iter().cloned().zip(first.into_iter().chain(ports)).collect();
    Placement { node_id: allocation.node_id, allocation_id: allocation.id, ports, gpus }
}

/// The GPUs of the allocation among what is held.
fn gpus_among(allocation: &Allocation, held: &[Held]) -> Vec<i32> {
    let holds = |name: &str| held.iter().any(|one| one.resource == name && one.quantity > 0);
    allocation.gpus.iter().copied().filter(|index| holds(&ledger::gpu_of(allocation.id, *index))).collect()
}

/// Those it has, and then the first that nobody has.
async fn free_gpus(
    conn: &mut PgConnection,
    allocation: &Allocation,
    old: &[i32],
    wanted: u32,
) -> Result<Vec<i32>, Fault> {
    let taken = ledger::gpus_held(conn, allocation.id, &allocation.gpus).await?;
    let free: Vec<i32> = allocation.gpus.iter().copied().filter(|index| !taken.contains(index)).collect();
    first_of(old, &free, wanted)
}

fn first_of(old: &[i32], more: &[i32], wanted: u32) -> Result<Vec<i32>, Fault> {
    let wanted = usize::try_from(wanted).map_err(|error| unreadable(&error))?;
    let gpus: Vec<i32> = old.iter().chain(more).take(wanted).copied().collect();
    if gpus.len() == wanted {
        Ok(gpus)
    } else {
        Err(Fault::terminal("insufficient_capacity", "no GPU of the allocation is free"))
    }
}

/// Whether the version's shape and accelerator fit was decided for good when the instance was asked for.
fn wanted(grant: Grant) -> Wanted {
    let Grant { gpu_count, cpu_cores, memory_gib, host_port } = grant;
    Wanted { gpu_count, cpu_cores, memory_gib, host_port, ..Wanted::default() }
}

/// The same predicates as when the instance was asked for: much may have changed since.
async fn fits(
    conn: &mut PgConnection,
    allocation: &Allocation,
    wanted: &Wanted,
    (asking, own): (Uuid, Grant),
) -> Result<Result<(), Why>, Fault> {
    let candidate = candidate(conn, allocation, wanted.host_port, Some(asking)).await?.without(&own);
    let row = placement::matrix(wanted, &[candidate]).remove(0);
    let broken: Vec<_> = row.predicates.iter().filter(|predicate| !predicate.holds).collect();
    if broken.is_empty() {
        return Ok(Ok(()));
    }
    let only_port = broken.iter().all(|predicate| predicate.name == "host_port");
    let reason = if only_port { StatusReason::PortUnavailable } else { StatusReason::InsufficientCapacity };
    let told: Vec<String> =
        broken.iter().map(|p| format!("{}: {} where {} is required", p.name, p.actual, p.required)).collect();
    let message = format!("the allocation cannot carry the instance: {}", told.join("; "));
    Ok(Err(Why { reason, message }))
}

/// The lowest free ones that nobody unknown was found on lately; the first is the one that was asked for, if one was.
async fn free_ports(
    conn: &mut PgConnection,
    node: Uuid,
    wanted: usize,
    asked: Option<u16>,
) -> Result<Vec<u16>, Fault> {
    let mut ports = Vec::new();
    let taken = node_tasks::ports_found_taken(conn, node).await?;
    for port in asked.into_iter().chain(PORTS) {
        if ports.len() == wanted {
            break;
        }
        if asked != Some(port) && taken.contains(&i32::from(port)) {
            continue;
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
