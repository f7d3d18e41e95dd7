//! `/api/v1/apps/manifest-schema` and `/api/v1/apps/manifests/validate`: what a manifest looks like, and what the
//! platform would say of one. Both look at nothing but what was sent.

use api_types::ValidManifest;
use axum::extract::Request;
use domain::manifest::{Accepted, schema};
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::manifest_body;
use crate::params::Params;

pub(crate) fn get_schema() -> Endpoint {
    Endpoint::new("get_manifest_schema", "The JSON Schema of manifests, for editors", show_schema)
        .answers::<Value>(200, "A JSON Schema (2020-12).")
}

async fn show_schema(params: Params) -> Result<Json<&'static Value>, ApiError> {
    params.finish()?;
    Ok(Json(schema()))
}

pub(crate) fn validate() -> Endpoint {
    Endpoint::new("validate_manifest", "What the platform would say of a manifest", dry_run)
        .manifest()
        .changes_nothing()
        .answers::<ValidManifest>(200, "The manifest holds; this is its normal form.")
}

async fn dry_run(params: Params, request: Request) -> Result<Json<ValidManifest>, ApiError> {
    params.finish()?;
    let (_, Accepted { manifest, warnings }) = manifest_body::read(request).await?;
    Ok(Json(ValidManifest { valid: true, digest: manifest.digest(), warnings, manifest }))
}
