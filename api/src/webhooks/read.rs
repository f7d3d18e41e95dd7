//! `GET P/webhooks` and `/{id}`. Secrets are not shown.

use api_types::{Page, Webhook};
use axum::extract::State as Shared;
use domain::ErrorCode;
use store::webhooks as table;

use super::{place, shown};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_webhooks", "Where the project wants its events sent", all)
        .answers_page::<Webhook>("A page of webhooks.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_webhook", "One webhook", one)
        .answers::<Webhook>(200, "The webhook.")
        .tagged()
        .refuses(&[ErrorCode::WebhookNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Webhook>>, ApiError> {
    let paging = Paging::read(&mut params, "wh1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, place(&caller)?.1, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Webhook>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::WebhookNotFound;
    let mut tx = state.read().await?;
    let found = table::find(&mut tx, place(&caller)?.1, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}
