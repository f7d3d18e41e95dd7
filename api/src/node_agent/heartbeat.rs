//! `POST /internal/v1/nodes/{id}/heartbeat`: the node lives, and this is what runs there, which is also how the time of
//! instances is counted. An older report than the one that is kept changes nothing, and its node learns the number that is; one by
//! another driver than the node's is refused: it does not see what runs there.

use axum::extract::State as Shared;
use domain::{ErrorCode, NodeStatus};
use node_protocol::{Heartbeat, HeartbeatAnswer, WorkloadReport, WorkloadState};
use store::nodes::{self, Report};
use store::{app_instance_artifacts, meters};

use super::{HEARTBEAT_SECONDS, Said, wellbeing};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

pub(crate) fn heartbeat() -> Endpoint {
    Endpoint::new("report_node_heartbeat", "The node lives, and this is what runs there", hear)
        .body::<Heartbeat>()
        .answers::<HeartbeatAnswer>(200, "The signers to believe, and when to report again.")
        .refuses(&[ErrorCode::StateConflict])
}

async fn hear(
    Shared(state): Shared<State>,
    caller: Caller,
    Said(mut told): Said<Heartbeat>,
) -> Result<Json<HeartbeatAnswer>, ApiError> {
    let node = caller.principal().id;
    let mut tx = state.write().await?;
    believed(&mut tx, node, told.driver.as_deref()).await?;
    wellbeing::of_those_who_speak(&mut tx, node, &mut told.workloads).await?;
    let report = serde_json::json!({ "workloads": told.workloads, "gpus": told.gpus });
    let new = Report {
        sequence: told.sequence,
        report: &report,
        agent_version: &told.agent_version,
        address: told.address.as_deref(),
    };
    let mut kept_sequence = Some(told.sequence);
    if nodes::heard(&mut tx, node, &new).await? {
        come_back(&mut tx, node).await?;
        wellbeing::note(&mut tx, node, &told.workloads).await?;
        meters::node_reported(&mut tx, node, &running(&told)).await?;
    } else {
        kept_sequence = nodes::find(&mut tx, node).await?.map(|node| node.report_sequence);
    }
    let (keyring, handovers) = state.signers.told_to(&mut tx, told.keyring_version).await?;
    let keep_images = if told.asks_for_images {
        Some(app_instance_artifacts::digests_on(&mut tx, node).await?)
    } else {
        None
    };
    tx.commit().await?;
    let heartbeat_seconds = HEARTBEAT_SECONDS;
    Ok(Json(HeartbeatAnswer { keyring, handovers, keep_images, kept_sequence, heartbeat_seconds }))
}

/// A report by another driver would say that nothing runs where everything does.
async fn believed(
    conn: &mut sqlx::PgConnection,
    node: uuid::Uuid,
    driver: Option<&str>,
) -> Result<(), ApiError> {
    let enrolled = nodes::find(conn, node).await?.and_then(|node| node.driver);
    match (driver, enrolled) {
        (Some(told), Some(enrolled)) if told != enrolled => {
            let message = format!("The node enrolled with the driver `{enrolled}` and reports by `{told}`.");
            Err(ApiError::new(ErrorCode::StateConflict, message).with("state", enrolled))
        }
        _ => Ok(()),
    }
}

/// The instances of which anything runs: an instance is counted once, however many workloads it has.
fn running(told: &Heartbeat) -> Vec<uuid::Uuid> {
    let runs = |workload: &&WorkloadReport| workload.state == WorkloadState::Running;
    told.workloads.iter().filter(runs).map(|workload| workload.instance_id).collect()
}

/// A node that was given up for lost is where it was before.
async fn come_back(conn: &mut sqlx::PgConnection, id: uuid::Uuid) -> Result<(), ApiError> {
    let Some(node) = nodes::find(conn, id).await? else { return Ok(()) };
    if node.status()? == NodeStatus::Unavailable {
        let back = if node.drained { NodeStatus::Drained } else { NodeStatus::Active };
        nodes::move_to(conn, id, NodeStatus::Unavailable, back).await?;
    }
    Ok(())
}
