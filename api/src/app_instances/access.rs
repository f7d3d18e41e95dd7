//! `GET P/app-instances/{id}/access`: where the instance is reached. Its ports are on the node's loopback address, so
//! from elsewhere a tunnel leads there.

use api_types::{InstanceAccess, InstanceEndpoint};
use axum::extract::State as Shared;
use domain::ErrorCode;
use node_protocol::{Health, WorkloadReport};
use serde::Deserialize;
use serde_json::Value;
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
    tx.rollback().await?;
    let kept: Vec<Kept> = serde_json::from_value(instance.endpoints.clone()).unwrap_or_default();
    let (Some(node), false) = (node, instance.status()?.is_terminal()) else {
        return Ok(Json(InstanceAccess { endpoints: Vec::new() }));
    };
    let health = health(&instance, node.report.as_ref());
    let endpoints = kept.into_iter().map(|kept| endpoint(&node, kept, &health)).collect();
    Ok(Json(InstanceAccess { endpoints }))
}

fn endpoint(node: &Node, Kept { name, port }: Kept, health: &str) -> InstanceEndpoint {
    let address = node.address.as_deref().unwrap_or("127.0.0.1");
    InstanceEndpoint {
        name,
        node: node.name.clone(),
        private_address: format!("127.0.0.1:{port}"),
        url: format!("http://127.0.0.1:{port}"),
        tunnel_command: format!("ssh -N -L {port}:127.0.0.1:{port} {address}"),
        health: health.to_owned(),
    }
}

/// What the node told last of the instance's newest workload.
fn health(instance: &AppInstance, report: Option<&Value>) -> String {
    let workloads = report.map(|report| report["workloads"].clone()).unwrap_or_default();
    let workloads: Vec<WorkloadReport> = serde_json::from_value(workloads).unwrap_or_default();
    let own = workloads.into_iter().filter(|workload| workload.instance_id == instance.id);
    let newest = own.max_by_key(|workload| workload.generation);
    match newest.map(|workload| workload.health) {
        Some(Health::Healthy) => "healthy".to_owned(),
        Some(Health::Unhealthy) => "unhealthy".to_owned(),
        Some(Health::Unknown) | None => "unknown".to_owned(),
    }
}
