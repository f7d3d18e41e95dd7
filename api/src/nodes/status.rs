//! `POST A/nodes/{id}/drain|activate`. A drained node takes no new work and keeps what it has. Asking for what is so
//! already changes nothing.

use api_types::{Node, Operate};
use axum::response::Response;
use domain::{ErrorCode, NodeStatus};
use serde_json::json;
use store::nodes as table;

use super::{found, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn drain() -> Endpoint {
    endpoint("drain_node", "Place nothing more on the node", stop)
}

pub(crate) fn activate() -> Endpoint {
    endpoint("activate_node", "Place workloads on the node again", start)
}

fn endpoint<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
where
    H: axum::handler::Handler<T, crate::state::State>,
    T: 'static,
{
    Endpoint::new(name, summary, handler)
        .header("If-Match", "Only if the node still has this tag.")
        .body::<Operate>()
        .answers::<Node>(200, "The node as it is now; `ETag` tags it.")
        .refuses(&[ErrorCode::NodeNotFound, ErrorCode::PreconditionFailed, ErrorCode::StateConflict])
}

async fn stop(id: Id, if_match: IfMatch, change: Mutation<Operate>) -> Result<Response, ApiError> {
    set(id, if_match, change, NodeStatus::Drained).await
}

async fn start(id: Id, if_match: IfMatch, change: Mutation<Operate>) -> Result<Response, ApiError> {
    set(id, if_match, change, NodeStatus::Active).await
}

async fn set(
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<Operate>,
    wanted: NodeStatus,
) -> Result<Response, ApiError> {
    let before = shown(found(&mut change, id).await?)?;
    if_match.require(&before)?;
    // An administrator drains and activates; enrolling and being lost are not theirs to end.
    let theirs = matches!(before.status, NodeStatus::Active | NodeStatus::Drained);
    if !theirs {
        return Err(ApiError::new(ErrorCode::StateConflict, "The node is not in anybody's hands now.")
            .with("state", before.status.as_str())
            .with("allowed_actions", json!(before.allowed_actions)));
    }
    if before.status != wanted {
        table::move_to(&mut change.tx, before.id, before.status, wanted).await?;
    }
    let after = shown(found(&mut change, id).await?)?;
    let reason = change.body.reason.take();
    let told = Change::of("node", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}
