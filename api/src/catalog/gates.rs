//! `GET /apps/catalog/{slug}/versions/{version}/gates`: for every action, where it leads and which of its gates is red.

use api_types::{VersionGates, VersionTransition};
use axum::extract::State as Shared;
use domain::version_gate::{Check, Facts, gates as judged, red};
use domain::{ErrorCode, Permission, Scope, VersionAction, VersionStatus};
use serde_json::json;
use store::version_facts;

use super::VersionKey;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;

pub(crate) fn gates() -> Endpoint {
    Endpoint::new("get_version_gates", "What stands between a version and its next status", show)
        .answers::<VersionGates>(200, "Every action with its gates, each with what it was judged by.")
        .refuses(&[ErrorCode::VersionNotFound])
}

async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    key: VersionKey,
    params: Params,
) -> Result<Json<VersionGates>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let version = key.find(&mut tx).await?;
    let facts = version_facts::of(&mut tx, &version).await?;
    tx.rollback().await?;
    let insider = caller.principal().holds(Permission::AppsVersionManage, Scope::Platform);
    let transitions =
        VersionAction::ALL.map(|action| transition(action, version.status, &facts, insider)).into();
    Ok(Json(VersionGates {
        app_slug: version.slug,
        version: version.version,
        status: version.status,
        transitions,
    }))
}

/// Whose instances use a version is the platform's own business; that there are some, everybody's.
fn transition(
    action: VersionAction,
    status: VersionStatus,
    facts: &Facts,
    insider: bool,
) -> VersionTransition {
    let (to, mut gates) = (action.leads(status), judged(action, facts));
    for gate in gates.iter_mut().filter(|gate| gate.check == Check::NoReferences && !insider) {
        gate.evidence = json!({});
    }
    VersionTransition { action, to, open: to.is_some() && red(&gates).is_empty(), gates }
}
