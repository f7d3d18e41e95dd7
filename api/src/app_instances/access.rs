//! `GET P/app-instances/{id}/access`: where the instance is reached. Its ports are on the node's loopback address, so
//! from elsewhere a tunnel leads there.

use api_types::{InstanceAccess, InstanceEndpoint};
use axum::extract::State as Shared;
use domain::{ErrorCode, NodeStatus};
use node_protocol::{Health, WorkloadReport};
use serde::Deserialize;
use serde_json::Value;
use store::app_instance_artifacts::Standing;
use store::app_instance_releases;
use store::app_instances::AppInstance;
use store::nodes::Node;

use super::{found, node_of};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn access() -> Endpoint {
    Endpoint::new("get_app_instance_access", "Where the instance is reached", reach)
        .answers::<InstanceAccess>(200, "Its endpoints; none while nothing serves.")
        .refuses(&[ErrorCode::AppInstanceNotFound])
}

/// An endpoint as the row keeps it.
#[derive(Deserialize)]
struct Kept {
    name: String,
    port: u16,
}

async fn reach(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Json<InstanceAccess>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let node = node_of(&mut tx, &instance).await?;
    let serving = app_instance_releases::find(&mut tx, instance.id, Standing::Serving).await?;
    tx.rollback().await?;
    let kept: Vec<Kept> = serde_json::from_value(instance.endpoints.clone()).unwrap_or_default();
    let (Some(node), false) = (node, instance.status()?.is_terminal()) else {
        return Ok(Json(InstanceAccess { endpoints: Vec::new() }));
    };
    // A node that is lost is not believed any more.
    let report = node.report.as_ref().filter(|_| node.status != NodeStatus::Unavailable.as_str());
    let health = health(&instance, serving.map(|serving| serving.generation), report);
    let endpoints = kept.into_iter().map(|kept| endpoint(&node, kept, health)).collect();
    Ok(Json(InstanceAccess { endpoints }))
}

fn endpoint(node: &Node, Kept { name, port }: Kept, health: Health) -> InstanceEndpoint {
    let address = node.address.as_deref().unwrap_or("127.0.0.1");
    InstanceEndpoint {
        name,
        node: node.name.clone(),
        private_address: format!("127.0.0.1:{port}"),
        url: format!("http://127.0.0.1:{port}"),
        tunnel_command: format!("ssh -N -L {port}:127.0.0.1:{port} {address}"),
        health: health.as_str().to_owned(),
    }
}

/// What the node told last of the workload that serves.
fn health(instance: &AppInstance, serving: Option<i64>, report: Option<&Value>) -> Health {
    let workloads = report.map(|report| report["workloads"].clone()).unwrap_or_default();
    let workloads: Vec<WorkloadReport> = serde_json::from_value(workloads).unwrap_or_default();
    let own = |one: &&WorkloadReport| one.instance_id == instance.id && Some(one.generation) == serving;
    Health::of(workloads.iter().filter(own).map(|workload| workload.health))
}
