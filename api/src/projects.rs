//! `A/projects`: what owns every resource.

use api_types::{NewProject, Page, Project, ProjectPatch};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use store::{organizations, projects};
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as};
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
    Endpoint::new("list_projects", "Every project", all)
        .query("org_id", text_as(KnownFormat::Uuid), "Only projects of this organization.")
        .answers_page::<Project>("A page of projects.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_project", "A project", one)
        .answers::<Project>(200, "The project; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::ProjectNotFound])
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_project", "Make a project in an organization", make)
        .body::<NewProject>()
        .answers::<Project>(201, "The project; `ETag` tags it.")
        .tagged()
        .refuses(&[ErrorCode::OrganizationNotFound, ErrorCode::AlreadyExists])
}

pub(crate) fn patch() -> Endpoint {
    Endpoint::new("update_project", "Rename a project", rename)
        .header("If-Match", "Only if the project still has this tag.")
        .body::<ProjectPatch>()
        .answers::<Project>(200, "The project as it is now.")
        .tagged()
        .refuses(&[ErrorCode::ProjectNotFound, ErrorCode::PreconditionFailed])
}

async fn all(
    Shared(state): Shared<State>,
    _: Caller,
    mut params: Params,
) -> Result<Json<Page<Project>>, ApiError> {
    let paging = Paging::read(&mut params, "prj1");
    let org = params.parsed("org_id", "a UUID");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = projects::list(&mut tx, org, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    _: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Project>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::ProjectNotFound;
    let mut tx = state.read().await?;
    let found = projects::find(&mut tx, id.or(missing)?).await?;
    tx.rollback().await?;
    found.map(|row| Tagged(shown(row))).ok_or_else(|| ApiError::plain(missing))
}

async fn make(mut change: Mutation<NewProject>) -> Result<Response, ApiError> {
    let NewProject { org_id, slug, display_name } = &change.body;
    if !organizations::exists(&mut change.tx, *org_id).await? {
        return Err(ApiError::plain(ErrorCode::OrganizationNotFound));
    }
    let name = display_name.as_deref().unwrap_or(slug);
    let made = shown(projects::insert(&mut change.tx, Uuid::now_v7(), *org_id, slug, name).await?);
    let answer = Answer::created(format!("{ADMIN}/projects/{}", made.id), &made)?.tagged();
    let told = Change::of("project", made.id).owned_by(made.org_id, made.id).to(&made);
    change.commit(told, answer).await
}

async fn rename(id: Id, if_match: IfMatch, mut change: Mutation<ProjectPatch>) -> Result<Response, ApiError> {
    let missing = ErrorCode::ProjectNotFound;
    let found = projects::find_locked(&mut change.tx, id.or(missing)?).await?;
    let before = shown(found.ok_or_else(|| ApiError::plain(missing))?);
    if_match.require(&before)?;
    let after = match &change.body.display_name {
        Some(name) => shown(projects::rename(&mut change.tx, before.id, name).await?),
        None => before.clone(),
    };
    let reason = change.body.reason.take();
    let told = Change::of("project", after.id)
        .owned_by(after.org_id, after.id)
        .from(&before)
        .to(&after)
        .because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

fn shown(row: projects::Project) -> Project {
    Project {
        id: row.id,
        org_id: row.org_id,
        slug: row.slug,
        display_name: row.display_name,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
