//! `P/apps/entitlements`: which apps a project may use, and what it gave up of them. People decide this; machines are
//! refused at the gate.

mod effective;
mod set;

pub(crate) use effective::effective;
pub(crate) use set::set;

use api_types::{Entitlement, Page};
use axum::extract::State as Shared;
use domain::{ErrorCode, manifest};
use sqlx::PgConnection;
use store::apps::App;
use store::{app_versions, entitlements as table};
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

/// What a project may no longer ask for once an app is disabled. Decommissioning always stays possible.
pub(crate) const BLOCKED: [&str; 4] = ["deploy", "upgrade", "rollback", "retry"];

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_entitlements", "The apps that the project was given, enabled or not", all)
        .answers_page::<Entitlement>("A page of entitlements.")
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Entitlement>>, ApiError> {
    let paging = Paging::read(&mut params, "e1");
    params.finish()?;
    let (_, project) = place(&caller)?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, project, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.app_id, shown)))
}

/// Organization and project of the path.
fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    let place = caller.scope.org().zip(caller.scope.project());
    place.ok_or_else(|| ApiError::internal(&"a route of projects outside of one"))
}

/// The manifest that is the outermost layer: that of the version everybody gets, or else of the newest.
async fn manifest_of(conn: &mut PgConnection, app: &App) -> Result<Option<manifest::Manifest>, ApiError> {
    let Some(number) = app.active_version.as_ref().or(app.newest_version.as_ref()) else { return Ok(None) };
    let missing = || ApiError::plain(ErrorCode::VersionNotFound);
    let version = app_versions::find(conn, &app.slug, number).await?.ok_or_else(missing)?;
    let manifest = serde_json::from_value(version.manifest).map_err(|error| ApiError::internal(&error))?;
    Ok(Some(manifest))
}

fn shown(row: table::Entitlement) -> Entitlement {
    Entitlement {
        org_id: row.org_id,
        project_id: row.project_id,
        app_slug: row.app_slug,
        enabled: row.enabled,
        policy_overrides: row.overrides.0,
        updated_by: row.updated_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
