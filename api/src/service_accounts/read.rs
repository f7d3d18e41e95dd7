//! `GET P/service-accounts` and `/{id}`.

use api_types::{Page, ServiceAccount};
use axum::extract::State as Shared;
use domain::ErrorCode;
use store::{service_account_keys, service_accounts as table};

use super::{project, shown};
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
    Endpoint::new("list_service_accounts", "The project's service accounts", all)
        .answers_page::<ServiceAccount>("A page of service accounts.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_service_account", "A service account with its live keys", one)
        .answers::<ServiceAccount>(
            200,
            "The service account; the `ETag` header is a strong tag of this very body.",
        )
        .tagged()
        .refuses(&[ErrorCode::ServiceAccountNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<ServiceAccount>>, ApiError> {
    let paging = Paging::read(&mut params, "sa1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, project(&caller)?, paging.slice()).await?;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let mut keys = service_account_keys::live_of(&mut tx, &ids).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(
        rows.into_iter().map(|row| (keys.remove(&row.id).unwrap_or_default(), row)).collect(),
        |(_, row)| row.id,
        |(keys, row)| shown(row, keys),
    )))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<ServiceAccount>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::ServiceAccountNotFound;
    let mut tx = state.read().await?;
    let account = table::find(&mut tx, project(&caller)?, id.or(missing)?).await?;
    let account = account.ok_or_else(|| ApiError::plain(missing))?;
    let keys = service_account_keys::live(&mut tx, account.id).await?;
    tx.rollback().await?;
    Ok(Tagged(shown(account, keys)))
}
