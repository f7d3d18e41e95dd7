//! `GET /apps/catalog/{slug}/versions/{version}/explain`: what a version needs and gives, from its manifest alone.

use axum::extract::State as Shared;
use domain::ErrorCode;
use domain::explanation::Explanation;
use domain::manifest::Manifest;

use super::VersionKey;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;

pub(crate) fn explain() -> Endpoint {
    Endpoint::new("explain_version", "What a version needs and gives, in one view", show)
        .answers::<Explanation>(200, "Parameters, credentials, ports, needs, artifacts, trust and price.")
        .refuses(&[ErrorCode::VersionNotFound])
}

async fn show(
    Shared(state): Shared<State>,
    _: Caller,
    key: VersionKey,
    params: Params,
) -> Result<Json<Explanation>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let version = key.find(&mut tx).await?;
    tx.rollback().await?;
    let manifest: Manifest =
        serde_json::from_value(version.manifest).map_err(|error| ApiError::internal(&error))?;
    Ok(Json(Explanation::of(&manifest)))
}
