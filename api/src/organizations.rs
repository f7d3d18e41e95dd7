//! `A/organizations`: the tenants.

use api_types::{NewOrganization, Organization, OrganizationPatch, Page};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use store::organizations;
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
use crate::router::ADMIN;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_organizations", "Every organization", all)
        .answers_page::<Organization>("A page of organizations.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_organization", "An organization", one)
        .answers::<Organization>(
            200,
            "The organization; the `ETag` header is a strong tag of this very body.",
        )
        .tagged()
        .refuses(&[ErrorCode::OrganizationNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_organization", "Make an organization", make)
        .body::<NewOrganization>()
        .answers::<Organization>(201, "The organization; `ETag` tags it.")
        .tagged()
        .refuses(&[ErrorCode::AlreadyExists])
}

pub(crate) fn patch() -> Endpoint {
    Endpoint::new("update_organization", "Rename an organization", rename)
        .header("If-Match", "Only if the organization still has this tag.")
        .body::<OrganizationPatch>()
        .answers::<Organization>(200, "The organization as it is now.")
        .tagged()
        .refuses(&[ErrorCode::OrganizationNotFound, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    _: Caller,
    mut params: Params,
) -> Result<Json<Page<Organization>>, ApiError> {
    let paging = Paging::read(&mut params, "org1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = organizations::list(&mut tx, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    _: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Organization>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::OrganizationNotFound;
    let mut tx = state.read().await?;
    let found = organizations::find(&mut tx, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(mut change: Mutation<NewOrganization>) -> Result<Response, ApiError> {
    let NewOrganization { slug, display_name } = &change.body;
    let name = display_name.as_deref().unwrap_or(slug);
    let made = organizations::insert(&mut change.tx, Uuid::now_v7(), slug, name).await?;
    let made = shown(made);
    let answer = Answer::created(format!("{ADMIN}/organizations/{}", made.id), &made)?.tagged();
    let told = Change::of("organization", made.id).owned_by(made.id, None::<Uuid>).to(&made);
    change.commit(told, answer).await
}

async fn rename(
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<OrganizationPatch>,
) -> Result<Response, ApiError> {
    let missing = ErrorCode::OrganizationNotFound;
    let found = organizations::find_locked(&mut change.tx, id.or(missing)?).await?;
    let before = shown(found.ok_or_else(|| ApiError::plain(missing))?);
    if_match.require(&before)?;
    let after = match &change.body.display_name {
        Some(name) => shown(organizations::rename(&mut change.tx, before.id, name).await?),
        None => before.clone(),
    };
    let reason = change.body.reason.take();
    let told = Change::of("organization", after.id)
        .owned_by(after.id, None::<Uuid>)
        .from(&before)
        .to(&after)
        .because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

fn shown(row: organizations::Organization) -> Organization {
    Organization {
        id: row.id,
        slug: row.slug,
        display_name: row.display_name,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
