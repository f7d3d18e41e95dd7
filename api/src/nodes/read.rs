//! `GET A/nodes` and `/{id}`.

use api_types::{Node, Page};
use axum::extract::State as Shared;
use domain::ErrorCode;
use store::nodes as table;

use super::shown;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_nodes", "Every node", all).answers_page::<Node>("A page of nodes.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_node", "A node with what it told of itself last", one)
        .answers::<Node>(200, "The node; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::NodeNotFound])
}

async fn all(Shared(state): Shared<State>, mut params: Params) -> Result<Json<Page<Node>>, ApiError> {
    let paging = Paging::read(&mut params, "node1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, paging.slice()).await?;
    tx.rollback().await?;
    let nodes = rows.into_iter().map(shown).collect::<Result<Vec<Node>, _>>()?;
    Ok(Json(paging.page(nodes, |node| node.id, |node| node)))
}

async fn one(Shared(state): Shared<State>, id: Id, params: Params) -> Result<Tagged<Node>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::NodeNotFound;
    let mut tx = state.read().await?;
    let node = table::find(&mut tx, id.or(missing)?).await?;
    tx.rollback().await?;
    Ok(Tagged(shown(node.ok_or_else(|| ApiError::plain(missing))?)?))
}
