//! `P/signing-keys`: whose signatures a project accepts. Only public halves come here; a retired key vouches for nothing
//! from the next verification on.

use api_types::{NewSigningKey, Operate, Page, SigningKey};
use axum::extract::State as Shared;
use axum::response::Response;
use clients::trust::PublicKey;
use domain::ErrorCode;
use store::signing_keys as table;
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
use crate::state::State;

const ALGORITHM: &str = "ecdsa_p256_sha256";

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_signing_keys", "The keys whose signatures the project accepts", all)
        .answers_page::<SigningKey>("A page of signing keys, retired ones included.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_signing_key", "A signing key", one)
        .answers::<SigningKey>(200, "The key; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::SigningKeyNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_signing_key", "Accept the signatures of a key", make)
        .body::<NewSigningKey>()
        .answers::<SigningKey>(201, "The key.")
        .tagged()
        .refuses(&[ErrorCode::AlreadyExists])
}

pub(crate) fn retire() -> Endpoint {
    Endpoint::new("retire_signing_key", "Accept nothing new of a key", end)
        .header("If-Match", "Only if the key still has this tag.")
        .body::<Operate>()
        .answers::<SigningKey>(200, "The key, retired.")
        .tagged()
        .refuses(&[ErrorCode::SigningKeyNotFound, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<SigningKey>>, ApiError> {
    let paging = Paging::read(&mut params, "sk1");
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
) -> Result<Tagged<SigningKey>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::SigningKeyNotFound;
    let mut tx = state.read().await?;
    let found = table::find(&mut tx, place(&caller)?.1, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(mut change: Mutation<NewSigningKey>) -> Result<Response, ApiError> {
    let (org_id, project_id) = place(&change.caller)?;
    let wrong = |why: clients::trust::KeyFault| ApiError::invalid("/public_key_pem", why.to_string());
    let key = PublicKey::from_pem(&change.body.public_key_pem).map_err(wrong)?;
    let new = table::NewSigningKey {
        id: Uuid::now_v7(),
        org_id,
        project_id,
        name: &change.body.name,
        algorithm: ALGORITHM,
        public_key: &key.to_pem().map_err(wrong)?,
        created_by: change.caller.principal().id,
    };
    let key = shown(table::insert(&mut change.tx, &new).await?);
    let location = format!("/api/v1/projects/{project_id}/signing-keys/{}", key.id);
    let told = Change::of("signing_key", key.id).to(&key);
    change.commit(told, Answer::created(location, &key)?.tagged()).await
}

async fn end(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let missing = ErrorCode::SigningKeyNotFound;
    let project = place(&change.caller)?.1;
    let before = table::find_locked(&mut change.tx, project, id.or(missing)?).await?;
    let before = shown(before.ok_or_else(|| ApiError::plain(missing))?);
    if_match.require(&before)?;
    let after = shown(table::retire(&mut change.tx, before.id).await?);
    let reason = change.body.reason.take();
    let told = Change::of("signing_key", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    match (caller.scope.org(), caller.scope.project()) {
        (Some(org), Some(project)) => Ok((org, project)),
        _ => Err(ApiError::internal(&"a route of projects outside of one")),
    }
}

fn shown(row: table::SigningKey) -> SigningKey {
    SigningKey {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        name: row.name,
        algorithm: row.algorithm,
        public_key_pem: row.public_key,
        created_by: row.created_by,
        created_at: row.created_at,
        retired_at: row.retired_at,
    }
}
