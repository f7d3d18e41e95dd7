//! `A/nodes`: the machines that run workloads. A new one comes with a token that enrols it, told once.

mod create;
mod read;
mod status;
mod update;

pub(crate) use create::{create, hash};
pub(crate) use read::{list, show};
pub(crate) use status::{activate, drain};

use api_types::{Node, NodeAction};
use domain::{ErrorCode, NodeStatus};
use serde_json::{Value, json};
use store::nodes as table;

use crate::error::ApiError;
use crate::mutation::Mutation;
use crate::path::Id;

/// The node, held still until the transaction ends.
async fn found<T>(change: &mut Mutation<T>, id: Id) -> Result<table::Node, ApiError> {
    let missing = ErrorCode::NodeNotFound;
    let node = table::find_locked(&mut change.tx, id.or(missing)?).await?;
    node.ok_or_else(|| ApiError::plain(missing))
}

fn shown(row: table::Node) -> Result<Node, ApiError> {
    let status = row.status()?;
    let told = |what: &str| {
        let told = row.report.as_ref().map(|report| report[what].clone());
        told.filter(Value::is_array).unwrap_or_else(|| json!([]))
    };
    let (workloads, gpus) = (told("workloads"), told("gpus"));
    Ok(Node {
        id: row.id,
        name: row.name,
        status,
        address: row.address,
        driver: row.driver,
        agent_version: row.agent_version,
        inventory: row.inventory,
        workloads,
        gpus,
        last_seen_at: row.last_seen_at,
        created_by: row.created_by,
        created_at: row.created_at,
        enrolled_at: row.enrolled_at,
        allowed_actions: actions(status),
    })
}

/// What an administrator may ask for now. A lost node comes back by itself.
fn actions(status: NodeStatus) -> Vec<NodeAction> {
    match status {
        NodeStatus::Active => vec![NodeAction::Drain, NodeAction::Update],
        NodeStatus::Drained => vec![NodeAction::Activate, NodeAction::Update],
        NodeStatus::Enrolling | NodeStatus::Unavailable => Vec::new(),
    }
}
