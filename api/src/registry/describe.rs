//! `GET /api/v1/apps/registry`: where images go, and by which rules.

use api_types::RegistryInfo;
use axum::extract::State as Shared;
use domain::{PolicyKey, artifact};
use store::policies::{self, Subject};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;

pub(crate) fn describe() -> Endpoint {
    Endpoint::new("get_registry", "The image registry and its rules", show)
        .answers::<RegistryInfo>(200, "The registry.")
}

async fn show(Shared(state): Shared<State>, params: Params) -> Result<Json<RegistryInfo>, ApiError> {
    params.finish()?;
    let host = state.depot()?.registry.host.clone();
    let mut tx = state.read().await?;
    // What holds everywhere; a project or organization may ask for more.
    let signature_required =
        policies::flag(&mut tx, PolicyKey::SignatureRequired, Subject::default()).await?;
    tx.rollback().await?;
    Ok(Json(RegistryInfo {
        registry_host: host,
        namespace_root: artifact::NAMESPACE.to_owned(),
        namespace_ownership_mode: "platform".to_owned(),
        repository_template: artifact::REPOSITORY_TEMPLATE.to_owned(),
        digest_only: true,
        private_repositories_enabled: true,
        visibility_classes: ["platform", "tenant", "project"].map(str::to_owned).to_vec(),
        signature_required,
    }))
}
