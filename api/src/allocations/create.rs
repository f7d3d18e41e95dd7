//! `POST A/allocations`: gives a project a part of a node. What is given is counted under the node's lock, so a node is
//! never given away twice.

use api_types::{Allocation, NewAllocation};
use axum::response::Response;
use domain::{CapacityShape, ErrorCode, NodeStatus};
use node_protocol::Inventory;
use serde_json::{Value, json};
use store::allocations::{self as table, Given};
use store::nodes::{self, Node};
use store::projects;
use uuid::Uuid;

use super::shown;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::router::ADMIN;

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_allocation", "Give a project a part of a node", make)
        .body::<NewAllocation>()
        .answers::<Allocation>(201, "The allocation, active; `ETag` tags it.")
        .refuses(&[
            ErrorCode::ProjectNotFound,
            ErrorCode::NodeNotFound,
            ErrorCode::StateConflict,
            ErrorCode::PlacementUnsatisfiable,
        ])
}

async fn make(mut change: Mutation<NewAllocation>) -> Result<Response, ApiError> {
    let wanted = change.body.clone();
    let org_id = projects::org_of(&mut change.tx, wanted.project_id).await?;
    let org_id = org_id.ok_or_else(|| ApiError::plain(ErrorCode::ProjectNotFound))?;
    let node = nodes::find_locked(&mut change.tx, wanted.node_id).await?;
    let node = node.ok_or_else(|| ApiError::plain(ErrorCode::NodeNotFound))?;
    let inventory = usable(&node)?;
    let share = Share::of(&wanted, &inventory);
    let given = table::given(&mut change.tx, node.id).await?;
    share.fits(&inventory, &given, wanted.capacity_shape)?;
    let gpus = share.gpus(&inventory, &given);
    let first_gpu = inventory.gpus.first().filter(|_| share.gpu_count > 0);
    let sku = wanted.sku.as_deref().or(first_gpu.map(|gpu| gpu.sku.as_str())).unwrap_or("cpu");
    let correlation_id = change.caller.context.correlation_id.to_string();
    let new = table::NewAllocation {
        id: Uuid::now_v7(),
        org_id,
        project_id: wanted.project_id,
        node_id: node.id,
        shape: wanted.capacity_shape,
        sku,
        accelerator: first_gpu.map(|gpu| gpu.accelerator.as_str()),
        gpu_count: share.gpu_count,
        gpus: &gpus,
        cpu_cores: share.cpu_cores,
        memory_gib: share.memory_gib,
        created_by: change.caller.principal().id,
        correlation_id: &correlation_id,
    };
    let made = shown(table::insert(&mut change.tx, &new).await?)?;
    let told = Change::of("allocation", made.id)
        .owned_by(org_id, wanted.project_id)
        .to(&made)
        .because(wanted.reason);
    let answer = Answer::created(format!("{ADMIN}/allocations/{}", made.id), &made)?.tagged();
    change.commit(told, answer).await
}

/// What a node has, if it takes new work.
fn usable(node: &Node) -> Result<Inventory, ApiError> {
    let status = node.status()?;
    if status != NodeStatus::Active {
        return Err(ApiError::new(ErrorCode::StateConflict, "Only an active node can be given away.")
            .with("state", status.as_str()));
    }
    let inventory = node.inventory.clone().unwrap_or(Value::Null);
    serde_json::from_value(inventory).map_err(|error| ApiError::internal(&error))
}

/// The part that is asked for, with what was left out decided.
struct Share {
    gpu_count: i32,
    cpu_cores: i32,
    memory_gib: i32,
}

impl Share {
    fn of(wanted: &NewAllocation, inventory: &Inventory) -> Share {
        let whole = wanted.capacity_shape == CapacityShape::Baremetal;
        let all = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let unless_given =
            |given: Option<i32>, all: i32, least: i32| given.unwrap_or(if whole { all } else { least });
        Share {
            gpu_count: unless_given(wanted.gpu_count, all(inventory.gpus.len()), 0),
            cpu_cores: unless_given(wanted.cpu_cores, all(inventory.cpu_cores as usize), 1),
            memory_gib: unless_given(wanted.memory_gib, all(inventory.memory_gib as usize), 1),
        }
    }

    /// The first that nobody has.
    fn gpus(&self, inventory: &Inventory, given: &Given) -> Vec<i32> {
        let all = inventory.gpus.iter().filter_map(|gpu| i32::try_from(gpu.index).ok());
        let free = all.filter(|index| !given.gpus.contains(index));
        free.take(usize::try_from(self.gpu_count).unwrap_or_default()).collect()
    }

    /// A whole machine is shared with nobody.
    fn fits(&self, inventory: &Inventory, given: &Given, shape: CapacityShape) -> Result<(), ApiError> {
        let rows = [
            ("gpu_count", i64::from(self.gpu_count), inventory.gpus.len() as i64 - given.gpu_count),
            ("cpu_cores", i64::from(self.cpu_cores), i64::from(inventory.cpu_cores) - given.cpu_cores),
            ("memory_gib", i64::from(self.memory_gib), i64::from(inventory.memory_gib) - given.memory_gib),
        ];
        let mut lacking: Vec<Value> = rows
            .iter()
            .filter(|(_, required, actual)| required > actual)
            .map(|(what, required, actual)| json!({ "predicate": what, "required": required, "actual": actual }))
            .collect();
        if shape == CapacityShape::Baremetal && given.allocations > 0 {
            let row = json!({ "predicate": "other_allocations", "required": 0, "actual": given.allocations });
            lacking.push(row);
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let message = "The node has less free than was asked for.";
        Err(ApiError::new(ErrorCode::PlacementUnsatisfiable, message).with("lacking", lacking))
    }
}
