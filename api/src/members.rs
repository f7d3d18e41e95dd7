//! `P/members` and `/api/v1/organizations/{org_id}/members`: who belongs there, each with one role. Nobody can give,
//! change or take away a role that holds more than they do.

use api_types::{Member, MemberPatch, NewMember, Operate, Page};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::{ErrorCode, OrganizationRole, PermissionSet, ProjectRole, Scope};
use sqlx::PgConnection;
use store::memberships::{self, Membership, RoleRef};
use store::{custom_roles, users};
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
    Endpoint::new("list_members", "Who belongs here, and as what", all)
        .answers_page::<Member>("A page of members.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_member", "A member", one)
        .answers::<Member>(200, "The member; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::MemberNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("add_member", "Take somebody in who has signed in before", add)
        .body::<NewMember>()
        .exactly_one_of::<NewMember>(&["user_id", "username"])
        .answers::<Member>(201, "The member; `ETag` tags the membership.")
        .tagged()
        .refuses(&[ErrorCode::UserNotFound, ErrorCode::RoleNotFound, ErrorCode::AlreadyExists])
}

pub(crate) fn patch() -> Endpoint {
    Endpoint::new("update_member", "Give a member another role", change)
        .header("If-Match", "Only if the membership still has this tag.")
        .body::<MemberPatch>()
        .answers::<Member>(200, "The member as it is now.")
        .tagged()
        .refuses(&[ErrorCode::MemberNotFound, ErrorCode::RoleNotFound, ErrorCode::PreconditionFailed])
}

pub(crate) fn delete() -> Endpoint {
    Endpoint::new("remove_member", "End a membership", remove)
        .header("If-Match", "Only if the membership still has this tag.")
        .body::<Operate>()
        .answers_nothing("Ended.")
        .refuses(&[ErrorCode::MemberNotFound, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Member>>, ApiError> {
    let paging = Paging::read(&mut params, "mbr1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = memberships::list(&mut tx, caller.scope, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Member>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::MemberNotFound;
    let mut tx = state.read().await?;
    let found = memberships::find(&mut tx, caller.scope, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn add(mut change: Mutation<NewMember>) -> Result<Response, ApiError> {
    let scope = change.caller.scope;
    let user = person(&mut change.tx, &change.body).await?;
    let role = Role::named(&mut change.tx, scope, &change.body.role).await?;
    within(&change.caller, role.keys)?;
    let id = memberships::insert(&mut change.tx, scope, user, role.stored(&change.body.role)).await?;
    let made = shown(found(&mut change.tx, scope, id).await?);
    let answer = Answer::created(format!("{}/{id}", members_of(scope)), &made)?.tagged();
    change.commit(Change::of("member", id).to(&made), answer).await
}

async fn change(id: Id, if_match: IfMatch, mut change: Mutation<MemberPatch>) -> Result<Response, ApiError> {
    let before = held(&mut change, id).await?;
    if_match.require(&before)?;
    let scope = change.caller.scope;
    let role = Role::named(&mut change.tx, scope, &change.body.role).await?;
    within(&change.caller, role.keys)?;
    memberships::set_role(&mut change.tx, before.id, role.stored(&change.body.role)).await?;
    let after = shown(found(&mut change.tx, scope, before.id).await?);
    let reason = change.body.reason.take();
    let told = Change::of("member", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

async fn remove(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let before = held(&mut change, id).await?;
    if_match.require(&before)?;
    memberships::delete(&mut change.tx, before.id).await?;
    let reason = change.body.reason.take();
    change.commit(Change::of("member", before.id).from(&before).because(reason), Answer::empty()).await
}

/// The member, if their present role holds nothing that the caller does not.
async fn held<T>(change: &mut Mutation<T>, id: Id) -> Result<Member, ApiError> {
    let scope = change.caller.scope;
    let member = found(&mut change.tx, scope, id.or(ErrorCode::MemberNotFound)?).await?;
    let role = Role::named(&mut change.tx, scope, &member.role).await?;
    within(&change.caller, role.keys)?;
    Ok(shown(member))
}

async fn found(conn: &mut PgConnection, scope: Scope, id: Uuid) -> Result<Membership, ApiError> {
    let member = memberships::find_locked(conn, scope, id).await?;
    member.ok_or_else(|| ApiError::plain(ErrorCode::MemberNotFound))
}

async fn person(conn: &mut PgConnection, wanted: &NewMember) -> Result<Uuid, ApiError> {
    let mut known = match (wanted.user_id, &wanted.username) {
        (Some(id), None) => users::find(conn, id).await?.into_iter().collect(),
        (None, Some(name)) => users::named(conn, name).await?,
        _ => return Err(ApiError::invalid("", "must have exactly one of user_id and username")),
    };
    if known.len() > 1 {
        return Err(ApiError::invalid("/username", "is the name of several people; say user_id"));
    }
    known.pop().map(|user| user.id).ok_or_else(|| ApiError::plain(ErrorCode::UserNotFound))
}

/// A role by the name it has in an organization or project.
struct Role {
    keys: PermissionSet,
    custom: Option<Uuid>,
}

impl Role {
    async fn named(conn: &mut PgConnection, scope: Scope, name: &str) -> Result<Role, ApiError> {
        let built_in = match scope {
            Scope::Project { .. } => name.parse().map(ProjectRole::keys),
            _ => name.parse().map(OrganizationRole::keys),
        };
        if let Ok(keys) = built_in {
            return Ok(Role { keys, custom: None });
        }
        let custom = match scope.org() {
            Some(org) => custom_roles::named(conn, org, name).await?,
            None => None,
        };
        let custom = custom.ok_or_else(|| ApiError::plain(ErrorCode::RoleNotFound))?;
        Ok(Role { keys: custom.keys(), custom: Some(custom.id) })
    }

    fn stored<'a>(&self, name: &'a str) -> RoleRef<'a> {
        self.custom.map_or(RoleRef::BuiltIn(name), RoleRef::Custom)
    }
}

fn members_of(scope: Scope) -> String {
    match scope {
        Scope::Project { project, .. } => format!("/api/v1/projects/{project}/members"),
        Scope::Organization { org } => format!("/api/v1/organizations/{org}/members"),
        Scope::Platform => String::new(),
    }
}

fn shown(row: Membership) -> Member {
    Member {
        id: row.id,
        user_id: row.user_id,
        username: row.username,
        role: row.role,
        role_id: row.role_id,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
