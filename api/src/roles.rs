//! `/api/v1/organizations/{org_id}/roles`: an organization's own roles. Nobody can put into a role what they do not
//! hold themselves.

use api_types::{NewRole, Operate, Page, Role, RolePatch};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::role::is_built_in;
use domain::{ErrorCode, Permission, PermissionSet};
use serde_json::json;
use store::custom_roles::{self, CustomRole};
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

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_roles", "The organization's own roles", all).answers_page::<Role>("A page of roles.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_role", "A custom role", one)
        .answers::<Role>(200, "The role; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::RoleNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_role", "Make a role of one's own", make)
        .body::<NewRole>()
        .answers::<Role>(201, "The role; `ETag` tags it.")
        .tagged()
        .refuses(&[ErrorCode::AlreadyExists])
}

pub(crate) fn patch() -> Endpoint {
    Endpoint::new(
        "update_role",
        "Rename a role or change its permissions, for everybody who holds it",
        change,
    )
    .header("If-Match", "Only if the role still has this tag.")
    .body::<RolePatch>()
    .answers::<Role>(200, "The role as it is now.")
    .tagged()
    .refuses(&[ErrorCode::RoleNotFound, ErrorCode::AlreadyExists, ErrorCode::PreconditionFailed])
}

pub(crate) fn delete() -> Endpoint {
    Endpoint::new("delete_role", "Delete a role that nobody holds", remove)
        .header("If-Match", "Only if the role still has this tag.")
        .body::<Operate>()
        .answers_nothing("Deleted.")
        .refuses(&[ErrorCode::RoleNotFound, ErrorCode::StateConflict, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Role>>, ApiError> {
    let paging = Paging::read(&mut params, "role1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = custom_roles::list(&mut tx, organization(&caller)?, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Role>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::RoleNotFound;
    let mut tx = state.read().await?;
    let found = custom_roles::find(&mut tx, organization(&caller)?, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(mut change: Mutation<NewRole>) -> Result<Response, ApiError> {
    let keys = grantable(&change.caller, &change.body.permissions)?;
    let name = free_name(&change.body.name)?;
    let org = organization(&change.caller)?;
    let made = shown(custom_roles::insert(&mut change.tx, org, name, keys).await?);
    let location = format!("/api/v1/organizations/{org}/roles/{}", made.id);
    let answer = Answer::created(location, &made)?.tagged();
    change.commit(Change::of("role", made.id).to(&made), answer).await
}

async fn change(id: Id, if_match: IfMatch, mut change: Mutation<RolePatch>) -> Result<Response, ApiError> {
    let role = found(&mut change, id).await?;
    let before = shown(role.clone());
    if_match.require(&before)?;
    let name = change.body.name.take();
    let name = name.as_deref().map_or(Ok(role.name.as_str()), free_name)?;
    let keys = match &change.body.permissions {
        Some(wanted) => grantable(&change.caller, wanted)?,
        None => role.keys(),
    };
    let after = shown(custom_roles::update(&mut change.tx, role.id, name, keys).await?);
    let reason = change.body.reason.take();
    let told = Change::of("role", role.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

async fn remove(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let before = shown(found(&mut change, id).await?);
    if_match.require(&before)?;
    let holders = custom_roles::holders(&mut change.tx, before.id).await?;
    if holders > 0 {
        return Err(ApiError::new(ErrorCode::StateConflict, "Members still hold this role.")
            .with("state", "held")
            .with("holders", json!(holders))
            .with("allowed_actions", json!([])));
    }
    custom_roles::delete(&mut change.tx, before.id).await?;
    let reason = change.body.reason.take();
    change.commit(Change::of("role", before.id).from(&before).because(reason), Answer::empty()).await
}

/// Whoever changes a role, or takes it away, holds what it gives.
async fn found<T>(change: &mut Mutation<T>, id: Id) -> Result<CustomRole, ApiError> {
    let missing = ErrorCode::RoleNotFound;
    let org = organization(&change.caller)?;
    let role = custom_roles::find_locked(&mut change.tx, org, id.or(missing)?).await?;
    let role = role.ok_or_else(|| ApiError::plain(missing))?;
    within(&change.caller, role.keys())?;
    Ok(role)
}

fn organization(caller: &Caller) -> Result<Uuid, ApiError> {
    caller.scope.org().ok_or_else(|| ApiError::internal(&"a route of organizations outside of one"))
}

/// The keys as a set, if a project can hold them and the caller does.
pub(crate) fn grantable(caller: &Caller, wanted: &[Permission]) -> Result<PermissionSet, ApiError> {
    if let Some(place) = wanted.iter().position(|key| !key.is_of_project()) {
        let problem = "is a key of the platform, which no project can hold";
        return Err(ApiError::invalid(&format!("/permissions/{place}"), problem));
    }
    let keys: PermissionSet = wanted.iter().copied().collect();
    within(caller, keys)?;
    Ok(keys)
}

/// Nobody can give, change or take away more than they hold themselves.
pub(crate) fn within(caller: &Caller, keys: PermissionSet) -> Result<(), ApiError> {
    let beyond = keys.beyond(caller.keys());
    if beyond.is_empty() {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::InsufficientPermissions, "This takes permissions the caller does not hold.")
        .with("permissions", json!(beyond)))
}

fn free_name(name: &str) -> Result<&str, ApiError> {
    if is_built_in(name) {
        return Err(ApiError::invalid("/name", "is the name of a built-in role"));
    }
    Ok(name)
}

fn shown(row: CustomRole) -> Role {
    Role {
        id: row.id,
        org_id: row.org_id,
        permissions: row.keys().iter().collect(),
        name: row.name,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
