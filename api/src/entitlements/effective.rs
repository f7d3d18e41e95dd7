//! `GET P/apps/entitlements/{slug}/effective`: what is left when every layer has had its say, and who took away what.

use api_types::{EffectiveEntitlement, ModeAndScope};
use axum::extract::{Path, State as Shared};
use domain::ErrorCode;
use domain::entitlement::{Layer, narrow};
use sqlx::PgConnection;
use store::apps::App;
use store::{apps, effective_policy, entitlements as table, version_references};
use uuid::Uuid;

use super::{BLOCKED, manifest_of, place};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;

pub(crate) fn effective() -> Endpoint {
    Endpoint::new("get_effective_entitlement", "What the project may do with an app, and why not more", show)
        .answers::<EffectiveEntitlement>(
            200,
            "The policy after intersection, with the layer behind every removal.",
        )
        .refuses(&[ErrorCode::AppNotFound])
}

async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path((_, slug)): Path<(Uuid, String)>,
    params: Params,
) -> Result<Json<EffectiveEntitlement>, ApiError> {
    params.finish()?;
    let place = place(&caller)?;
    let mut tx = state.read().await?;
    let app = apps::find(&mut tx, &slug).await?.ok_or_else(|| ApiError::plain(ErrorCode::AppNotFound))?;
    let body = of(&mut tx, place, &app).await?;
    tx.rollback().await?;
    Ok(Json(body))
}

pub(super) async fn of(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    app: &App,
) -> Result<EffectiveEntitlement, ApiError> {
    let entitlement = table::find(conn, place.1, app.id).await?;
    let overrides = entitlement.as_ref().map(|row| row.overrides.0.clone()).unwrap_or_default();
    let manifest = manifest_of(conn, app).await?;
    let policy = match &manifest {
        Some(manifest) => effective_policy::effective(conn, place, manifest, &overrides).await?,
        None => narrow(&[(Layer::Project, overrides)]),
    };
    let enabled = entitlement.is_some_and(|row| row.enabled);
    let instances = version_references::instances_of(conn, place.1, &app.slug).await?;
    let pair = |(operating_mode, control_plane_scope)| ModeAndScope { operating_mode, control_plane_scope };
    Ok(EffectiveEntitlement {
        app_slug: app.slug.clone(),
        version: manifest.map(|manifest| manifest.version.version),
        enabled,
        allowed_pairs: policy.pairs().into_iter().map(pair).collect(),
        policy,
        instances,
        blocked_actions: if enabled { Vec::new() } else { BLOCKED.map(str::to_owned).into() },
        notice: notice(enabled, instances),
    })
}

fn notice(enabled: bool, instances: i64) -> String {
    match (enabled, instances) {
        (true, _) => "The project may use the app within this policy.".to_owned(),
        (false, 0) => "The project may not use the app.".to_owned(),
        (false, running) => format!(
            "The project may not use the app any more: {running} of its instances go on as they are and can only be decommissioned."
        ),
    }
}
