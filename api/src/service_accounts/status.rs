//! `POST P/service-accounts/{id}/disable|enable` and `DELETE …/{id}`. Asking for what is so already changes nothing.

use api_types::{Operate, ServiceAccount};
use axum::response::Response;
use domain::ErrorCode;
use store::{service_account_keys, service_accounts as table};

use super::{found, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;
use crate::roles::within;

pub(crate) fn disable() -> Endpoint {
    endpoint("disable_service_account", "Refuse the account's tokens and keys from now on", stop)
        .answers::<ServiceAccount>(200, "The account, disabled; `ETag` tags it.")
        .tagged()
}

pub(crate) fn enable() -> Endpoint {
    endpoint("enable_service_account", "Accept the account's keys again", start)
        .answers::<ServiceAccount>(200, "The account, active; `ETag` tags it.")
        .tagged()
}

pub(crate) fn delete() -> Endpoint {
    endpoint(
        "delete_service_account",
        "Delete the account; its keys and tokens are refused from now on",
        remove,
    )
    .answers_nothing("Deleted.")
}

fn endpoint<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
where
    H: axum::handler::Handler<T, crate::state::State>,
    T: 'static,
{
    Endpoint::new(name, summary, handler)
        .header("If-Match", "Only if the service account still has this tag.")
        .body::<Operate>()
        .refuses(&[ErrorCode::ServiceAccountNotFound, ErrorCode::PreconditionFailed])
}

async fn stop(id: Id, if_match: IfMatch, change: Mutation<Operate>) -> Result<Response, ApiError> {
    set(id, if_match, change, "disabled").await
}

async fn start(id: Id, if_match: IfMatch, change: Mutation<Operate>) -> Result<Response, ApiError> {
    set(id, if_match, change, "active").await
}

async fn set(
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<Operate>,
    status: &'static str,
) -> Result<Response, ApiError> {
    let account = found(&mut change, id).await?;
    if status == "active" {
        within(&change.caller, account.keys())?;
    }
    let keys = service_account_keys::live(&mut change.tx, account.id).await?;
    let before = shown(account.clone(), keys.clone());
    if_match.require(&before)?;
    let after = if account.status == status {
        before.clone()
    } else {
        shown(table::set_status(&mut change.tx, account.id, status).await?, keys)
    };
    let reason = change.body.reason.take();
    let told = Change::of("service_account", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

async fn remove(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let account = found(&mut change, id).await?;
    let keys = service_account_keys::live(&mut change.tx, account.id).await?;
    let before = shown(account, keys);
    if_match.require(&before)?;
    service_account_keys::revoke_all(&mut change.tx, before.id).await?;
    table::set_status(&mut change.tx, before.id, "deleted").await?;
    let reason = change.body.reason.take();
    let told = Change::of("service_account", before.id).from(&before).because(reason);
    change.commit(told, Answer::empty()).await
}
