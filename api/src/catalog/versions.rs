//! `GET /apps/catalog/{slug}/versions` and `/{version}`.

use api_types::{AppVersion, Page, VersionCanary};
use axum::extract::{Path, State as Shared};
use domain::{ErrorCode, Permission, Scope, VersionStatus};
use store::{app_versions as table, entitlements};
use workflows::action::allowed_actions;

use super::apps::with_view;
use super::{VersionKey, View, app};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    let summary = "The versions of an app; with `entitled`, those a project may deploy";
    with_view(Endpoint::new("list_versions", summary, all))
        .answers_page::<AppVersion>("A page of versions, in the order of registration.")
        .refuses(&[ErrorCode::AppNotFound])
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_version", "A version of an app", one)
        .answers::<AppVersion>(200, "The version; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::VersionNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(slug): Path<String>,
    mut params: Params,
) -> Result<Json<Page<AppVersion>>, ApiError> {
    let paging = Paging::read(&mut params, "v1");
    let view = View::read(&state, &caller, &mut params).await;
    params.finish()?;
    let view = view?.filter(|view| view.entitled);
    let mut tx = state.read().await?;
    let app = app(&mut tx, &slug).await?;
    let rows = match view {
        None => table::list(&mut tx, app.id, paging.slice()).await?,
        Some(View { project, .. }) => {
            let entitlement = entitlements::find(&mut tx, project, app.id).await?;
            let entitled = entitlement.is_some_and(|entitlement| entitlement.enabled);
            // An app has few versions in rollout; all of them are looked at, whatever the page.
            let rolling = if entitled { table::deployable(&mut tx, app.id).await? } else { Vec::new() };
            let mine = |version: &table::AppVersion| {
                let canary = version.canary.as_ref();
                canary.is_none_or(|canary| canary.includes(version.id, project))
            };
            let after = paging.after.unwrap_or_default();
            rolling.into_iter().filter(|version| version.id > after && mine(version)).collect()
        }
    };
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |version| version.id, |version| shown(&version, &caller))))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    key: VersionKey,
    params: Params,
) -> Result<Tagged<AppVersion>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let version = key.find(&mut tx).await?;
    tx.rollback().await?;
    Ok(Tagged(shown(&version, &caller)))
}

/// Which projects are on a canary's list is the platform's own business.
pub(crate) fn shown(version: &table::AppVersion, caller: &Caller) -> AppVersion {
    let insider = caller.principal().holds(Permission::AppsVersionManage, Scope::Platform);
    let canary = version.canary.as_ref().filter(|_| version.status == VersionStatus::Canary);
    AppVersion {
        id: version.id,
        app_slug: version.slug.clone(),
        version: version.version.clone(),
        status: version.status,
        status_reason: version.status_reason.clone(),
        evidence: version.evidence.clone(),
        canary: canary.map(|canary| VersionCanary {
            percent: canary.percent,
            project_ids: insider.then(|| canary.project_ids.clone()),
        }),
        allowed_actions: allowed_actions(version).into_iter().map(str::to_owned).collect(),
        manifest: version.manifest.clone(),
        content_digest: version.content_digest.clone(),
        registered_by: version.registered_by,
        created_at: version.created_at,
        updated_at: version.updated_at,
    }
}
