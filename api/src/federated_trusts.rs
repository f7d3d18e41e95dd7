//! `P/federated-trusts`: which outside issuers' tokens the project accepts in exchange for a short token of one of its
//! service accounts.

use std::collections::BTreeMap;

use api_types::{FederatedTrust, NewFederatedTrust, Operate, Page};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use serde_json::json;
use store::{federated_trusts, service_accounts};
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{IfMatch, Tagged};
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::roles::within;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_federated_trusts", "Whose tokens the project accepts in exchange", all)
        .answers_page::<FederatedTrust>("A page of trusts.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_federated_trust", "Whose tokens are accepted, and for which account", one)
        .answers::<FederatedTrust>(200, "The trust; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::FederatedTrustNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_federated_trust", "Accept an outside issuer's tokens for a service account", make)
        .body::<NewFederatedTrust>()
        .answers::<FederatedTrust>(201, "The trust; its id is the `audience` of a token exchange.")
        .tagged()
        .refuses(&[ErrorCode::ServiceAccountNotFound, ErrorCode::AlreadyExists])
}

pub(crate) fn delete() -> Endpoint {
    Endpoint::new("delete_federated_trust", "Accept those tokens no longer", remove)
        .header("If-Match", "Only if the trust still has this tag.")
        .body::<Operate>()
        .answers_nothing("Deleted; tokens exchanged before stay good until they expire.")
        .refuses(&[ErrorCode::FederatedTrustNotFound, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<FederatedTrust>>, ApiError> {
    let paging = Paging::read(&mut params, "fed1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = federated_trusts::list(&mut tx, project(&caller)?, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<FederatedTrust>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::FederatedTrustNotFound;
    let mut tx = state.read().await?;
    let found = federated_trusts::find(&mut tx, id.or(missing)?).await?;
    let found = found.filter(|trust| caller.scope.project() == Some(trust.project_id));
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(
    Shared(state): Shared<State>,
    mut change: Mutation<NewFederatedTrust>,
) -> Result<Response, ApiError> {
    if !state.keys.verifier.may_federate(&change.body.issuer) {
        return Err(ApiError::invalid(
            "/issuer",
            "must be an https URL that is reachable from the open internet",
        ));
    }
    if change.body.subject_pattern.chars().all(|c| c == '*') {
        return Err(ApiError::invalid(
            "/subject_pattern",
            "must say more than `*`: that would be everybody there",
        ));
    }
    let project_id = project(&change.caller)?;
    let account = service_accounts::find(&mut change.tx, project_id, change.body.service_account_id).await?;
    let account = account.ok_or_else(|| ApiError::plain(ErrorCode::ServiceAccountNotFound))?;
    // Whoever is trusted can do all that the account can.
    within(&change.caller, account.keys())?;
    let new = federated_trusts::NewFederatedTrust {
        org_id: account.org_id,
        project_id,
        service_account_id: account.id,
        name: &change.body.name,
        issuer: &change.body.issuer,
        audience: &change.body.audience,
        subject_pattern: &change.body.subject_pattern,
        claims: &json!(change.body.claims),
        created_by: change.caller.principal().id,
    };
    let made = shown(federated_trusts::insert(&mut change.tx, &new).await?);
    let location = format!("/api/v1/projects/{project_id}/federated-trusts/{}", made.id);
    let answer = Answer::created(location, &made)?.tagged();
    change.commit(Change::of("federated_trust", made.id).to(&made), answer).await
}

async fn remove(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let missing = ErrorCode::FederatedTrustNotFound;
    let project = project(&change.caller)?;
    let found = federated_trusts::find(&mut change.tx, id.or(missing)?).await?;
    let before = found.filter(|trust| trust.project_id == project).map(shown);
    let before = before.ok_or_else(|| ApiError::plain(missing))?;
    // A trust never changes, so what was read is what is deleted.
    if_match.require(&before)?;
    federated_trusts::delete(&mut change.tx, before.id).await?;
    let reason = change.body.reason.take();
    let told = Change::of("federated_trust", before.id).from(&before).because(reason);
    change.commit(told, Answer::empty()).await
}

fn project(caller: &Caller) -> Result<Uuid, ApiError> {
    caller.scope.project().ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}

fn shown(row: federated_trusts::FederatedTrust) -> FederatedTrust {
    let claims: BTreeMap<String, String> = serde_json::from_value(row.claims).unwrap_or_default();
    FederatedTrust {
        id: row.id,
        project_id: row.project_id,
        name: row.name,
        service_account_id: row.service_account_id,
        issuer: row.issuer,
        audience: row.audience,
        subject_pattern: row.subject_pattern,
        claims,
        created_by: row.created_by,
        created_at: row.created_at,
    }
}
