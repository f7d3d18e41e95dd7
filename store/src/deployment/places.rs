//! The allocations of a project as candidates for an instance. Lock an allocation first where the answer must hold.

use domain::placement::{Amounts, Candidate};
use domain::{AllocationStatus, NodeStatus};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::allocations::{self, Allocation, Filter};
use crate::resource_ledger::{self as ledger, Kind};
use crate::{Slice, app_instances, nodes};

/// More than any project has at a time; the rest would not be read by anybody.
const MOST: i64 = 1000;

/// Everything the project has and has not given back, by id.
pub(super) async fn of_project(
    conn: &mut PgConnection,
    project: Uuid,
    port: Option<u16>,
) -> sqlx::Result<Vec<Candidate>> {
    let kept = AllocationStatus::ALL.into_iter().filter(|status| *status != AllocationStatus::Released);
    let filter = Filter { project: Some(project), status: kept.collect(), ..Filter::default() };
    let all = allocations::list(conn, &filter, Slice { after: None, limit: MOST }).await?;
    let mut candidates = Vec::new();
    for allocation in &all {
        candidates.push(candidate(conn, allocation, port, None).await?);
    }
    Ok(candidates)
}

/// An allocation with what is taken of it. The instance that asks is no neighbour of itself.
pub async fn candidate(
    conn: &mut PgConnection,
    allocation: &Allocation,
    port: Option<u16>,
    asking: Option<Uuid>,
) -> sqlx::Result<Candidate> {
    let node = match nodes::find(conn, allocation.node_id).await? {
        Some(node) => node.status()?,
        None => NodeStatus::Unavailable,
    };
    let held = ledger::held_of(conn, &ledger::allocation(allocation.id)).await?;
    let of = |kind: Kind| {
        let sum = held.iter().find(|held| held.kind == kind.as_str()).map_or(0, |held| held.quantity);
        u32::try_from(sum).unwrap_or_default()
    };
    let gpus = ledger::gpus_held(conn, allocation.id, &allocation.gpus).await?.len();
    let count = |number: i32| u32::try_from(number).unwrap_or_default();
    let port_is_held = match port {
        Some(port) => ledger::port_is_held(conn, allocation.node_id, port).await?,
        None => false,
    };
    let neighbours = app_instances::neighbours(conn, allocation.node_id, asking).await?;
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
            gpu_count: of(Kind::Gpu) + u32::try_from(gpus).unwrap_or_default(),
            cpu_cores: of(Kind::CpuCore),
            memory_gib: of(Kind::MemoryGib),
        },
        neighbours: count(neighbours.all),
        loners: count(neighbours.loners),
        port_is_held,
    })
}
