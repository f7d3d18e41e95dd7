//! `GET P/allocations`, `/{id}` and `GET A/allocations`. In a project, only its own are there.

use api_types::{Allocation, Page};
use axum::extract::State as Shared;
use domain::{AllocationStatus, ErrorCode};
use store::allocations::{self as table, Filter};
use utoipa::openapi::schema::KnownFormat;

use super::shown;
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as, words};
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::order::Order;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_allocations", "Allocations", all)
        .query("status", words::<AllocationStatus>(), "Only those in one of these, separated by commas.")
        .query("node_id", text_as(KnownFormat::Uuid), "Only those on this node.")
        .query("order", Order::schema(), Order::DESCRIPTION)
        .answers_page::<Allocation>("A page of allocations.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_allocation", "An allocation of the project", one)
        .answers::<Allocation>(200, "The allocation; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::AllocationNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Allocation>>, ApiError> {
    let order = Order::read(&mut params);
    let paging = Paging::read(&mut params, order.list("alloc1", "alloc1n"));
    let words = AllocationStatus::ALL.map(AllocationStatus::as_str).join(", ");
    let filter = Filter {
        project: caller.scope.project(),
        status: params.list("status", format!("some of {words}")),
        node: params.parsed("node_id", "a node's id"),
        newest_first: order.newest_first(),
    };
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, &filter, paging.slice()).await?;
    tx.rollback().await?;
    let allocations = rows.into_iter().map(shown).collect::<Result<Vec<Allocation>, _>>()?;
    Ok(Json(paging.page(allocations, |allocation| allocation.id, |allocation| allocation)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Allocation>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::AllocationNotFound;
    let mut tx = state.read().await?;
    let allocation = table::find(&mut tx, id.or(missing)?).await?;
    tx.rollback().await?;
    let place = caller.scope.project();
    let own = allocation.filter(|allocation| place.is_none_or(|project| project == allocation.project_id));
    Ok(Tagged(shown(own.ok_or_else(|| ApiError::plain(missing))?)?))
}
