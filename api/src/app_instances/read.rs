//! `GET P/app-instances` and `/{id}`.

use api_types::{AppInstance, Page};
use axum::extract::State as Shared;
use domain::{ErrorCode, InstanceStatus};
use store::app_instances::{self as table, Filter};
use utoipa::openapi::schema::KnownFormat;

use super::{found, project, shown, shown_all};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as, word, words};
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::order::Order;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_app_instances", "The project's app instances", all)
        .query("status", words::<InstanceStatus>(), "Only those in one of these, separated by commas.")
        .query("app", word(), "Only those of this app.")
        .query("version", word(), "Only those that serve this version.")
        .query("allocation", text_as(KnownFormat::Uuid), "Only those on this allocation.")
        .query("order", Order::schema(), Order::DESCRIPTION)
        .answers_page::<AppInstance>("A page of instances.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_app_instance", "An app instance", one)
        .answers::<AppInstance>(200, "The instance; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::AppInstanceNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<AppInstance>>, ApiError> {
    let order = Order::read(&mut params);
    let paging = Paging::read(&mut params, order.list("inst1", "inst1n"));
    let words = InstanceStatus::ALL.map(InstanceStatus::as_str).join(", ");
    let filter = Filter {
        project: Some(project(&caller)?),
        status: params.list("status", format!("some of {words}")),
        app: params.text("app"),
        version: params.text("version"),
        allocation: params.parsed("allocation", "an allocation's id"),
        newest_first: order.newest_first(),
    };
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, &filter, paging.slice()).await?;
    let all = shown_all(&mut tx, rows).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(all, |instance| instance.id, |instance| instance)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<AppInstance>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let instance = shown(&mut tx, instance).await?;
    tx.rollback().await?;
    Ok(Tagged(instance))
}
