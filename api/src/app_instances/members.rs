//! `GET P/app-instances/{id}/members`: the parts of the instance, as its node saw them last.

use api_types::{InstanceMember, Page};
use axum::extract::State as Shared;
use domain::{ErrorCode, NodeStatus};
use node_protocol::{WorkloadReport, WorkloadState};
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

pub(crate) fn members() -> Endpoint {
    Endpoint::new("list_app_instance_members", "The parts of the instance, as its node sees them", parts)
        .answers_page::<InstanceMember>("Its members, all on one page; none where nothing stands.")
        .refuses(&[ErrorCode::AppInstanceNotFound])
}

async fn parts(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    mut params: Params,
) -> Result<Json<Page<InstanceMember>>, ApiError> {
    params.only_page();
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let node = node_of(&mut tx, &instance).await?;
    tx.rollback().await?;
    let items = node.map(|node| seen(&instance, &node)).transpose()?.unwrap_or_default();
    Ok(Json(Page { items, next_cursor: None }))
}

/// A node that is lost is not believed any more.
fn seen(instance: &AppInstance, node: &Node) -> Result<Vec<InstanceMember>, ApiError> {
    let lost = node.status()? == NodeStatus::Unavailable;
    let report = node.report.clone().unwrap_or(Value::Null);
    let all: Vec<WorkloadReport> = serde_json::from_value(report["workloads"].clone()).unwrap_or_default();
    let own = all.into_iter().filter(|workload| workload.instance_id == instance.id);
    let member = |workload: WorkloadReport| InstanceMember {
        id: format!("{}-g{}", workload.member, workload.generation),
        allocation_id: instance.allocation_id,
        node_id: node.id,
        component_key: workload.member,
        generation: workload.generation,
        role: "node".to_owned(),
        status: match workload.state {
            _ if lost => "unreachable",
            WorkloadState::Created => "created",
            WorkloadState::Running => "running",
            WorkloadState::Restarting => "restarting",
            WorkloadState::Exited => "exited",
        }
        .to_owned(),
        health: workload.health.as_str().to_owned(),
    };
    Ok(own.map(member).collect())
}
