//! `GET /apps/catalog` and `/{slug}`. A page of the catalog reads one table; whose canaries a project is in is asked only
//! of apps that have one.

use api_types::{CatalogApp, Page};
use axum::extract::{Path, State as Shared};
use domain::ErrorCode;
use serde_json::Value;
use store::apps::{self, App};
use store::offers;
use utoipa::openapi::schema::KnownFormat;

use super::{View, app};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, switch, text_as};
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    with_view(Endpoint::new("list_apps", "The catalog; with `entitled`, what a project may deploy", all))
        .answers_page::<CatalogApp>("A page of apps, in the order in which they came.")
}

pub(crate) fn show() -> Endpoint {
    with_view(Endpoint::new("get_app", "An app of the catalog", one))
        .answers::<CatalogApp>(200, "The app; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::AppNotFound])
}

/// What every read of the catalog can be asked.
pub(super) fn with_view(endpoint: Endpoint) -> Endpoint {
    let about = "With `project_id`: only what the project is entitled to and may deploy, canaries included.";
    endpoint
        .query("project_id", text_as(KnownFormat::Uuid), "Whose view: adds what this project may deploy.")
        .query("entitled", switch(), about)
        .refuses(&[ErrorCode::ProjectNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<CatalogApp>>, ApiError> {
    let paging = Paging::read(&mut params, "a1");
    let view = View::read(&state, &caller, &mut params).await;
    params.finish()?;
    let mut tx = state.read().await?;
    let rows: Vec<(App, Option<String>)> = match view? {
        Some(View { project, entitled: true }) => {
            let offered = offers::page(&mut tx, project, paging.slice()).await?;
            offered.into_iter().map(|(app, version)| (app, Some(version))).collect()
        }
        Some(View { project, entitled: false }) => {
            let rows = apps::list(&mut tx, paging.slice()).await?;
            let mut offered = offers::newest(&mut tx, project, &rows).await?;
            rows.into_iter()
                .map(|app| (offered.remove(&app.id), app))
                .map(|(offer, app)| (app, offer))
                .collect()
        }
        None => apps::list(&mut tx, paging.slice()).await?.into_iter().map(|app| (app, None)).collect(),
    };
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |(app, _)| app.id, |(app, offered)| shown(app, offered))))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(slug): Path<String>,
    mut params: Params,
) -> Result<Tagged<CatalogApp>, ApiError> {
    let view = View::read(&state, &caller, &mut params).await;
    params.finish()?;
    let view = view?;
    let mut tx = state.read().await?;
    let app = app(&mut tx, &slug).await?;
    let offered = match view {
        Some(View { project, .. }) => {
            offers::newest(&mut tx, project, std::slice::from_ref(&app)).await?.remove(&app.id)
        }
        None => None,
    };
    tx.rollback().await?;
    Ok(Tagged(shown(app, offered)))
}

fn shown(app: App, offered_version: Option<String>) -> CatalogApp {
    let text = |name: &str| app.card.get(name).and_then(Value::as_str).map(str::to_owned);
    CatalogApp {
        id: app.id,
        display_name: text("display_name").unwrap_or_else(|| app.slug.clone()),
        description: text("description"),
        category: text("category"),
        runtime_backend: text("runtime_backend").unwrap_or_default(),
        supported_modes: app.card.get("supported_modes").cloned().unwrap_or_default(),
        ui: app.card.get("ui").cloned(),
        slug: app.slug,
        owner_project_id: app.owner_project_id,
        newest_version: app.newest_version,
        active_version: app.active_version,
        offered_version,
        created_at: app.created_at,
        updated_at: app.updated_at,
    }
}
