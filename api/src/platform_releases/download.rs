//! `GET platform/releases/{version}/artifacts/{name}/download`: the bytes of a blob. `SHA256SUMS` is a name that every
//! release has: what `sha256sum --check` reads.

use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use clients::blobs::{BlobFault, BlobName};
use domain::artifact;
use domain::manifest::ArtifactKind;
use domain::{Digest, ErrorCode};
use store::app_artifacts;
use store::platform_releases::ReleaseArtifact;

use super::{found, kind, named, require_trusted};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;
use crate::uploads;

const SUMS: &str = "SHA256SUMS";

pub(crate) fn download() -> Endpoint {
    Endpoint::new("download_platform_artifact", "The bytes of a release's blob", fetch)
        .answers_bytes("The bytes; `ETag` is their digest. Of `SHA256SUMS`, a line for every blob.")
        .refuses(&[ErrorCode::ReleaseNotFound, ErrorCode::ArtifactNotFound, ErrorCode::ArtifactUntrusted])
}

async fn fetch(
    Shared(state): Shared<State>,
    Path((version, name)): Path<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    params.finish()?;
    if name == SUMS {
        return sums(&state, &version).await;
    }
    let missing = || ApiError::plain(ErrorCode::ArtifactNotFound);
    let mut tx = state.read().await?;
    let artifact = named(&mut tx, &version, &name).await?;
    let row = app_artifacts::find(&mut tx, artifact.artifact_id).await?.ok_or_else(missing)?;
    tx.rollback().await?;
    if kind(&artifact) != ArtifactKind::Blob {
        return Err(missing());
    }
    require_trusted(&row)?;
    let blobs = state.depot()?.blobs.as_ref().ok_or_else(missing)?;
    let key = artifact::key_of(row.source_uri.as_deref().unwrap_or_default()).to_owned();
    let bytes = blobs.read(&BlobName { key, intent: row.intent_id }).await.map_err(|fault| match fault {
        BlobFault::Absent => missing(),
        fault => uploads::refused(fault),
    })?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, row.size_bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::ETAG, format!("\"{}\"", row.digest)),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

async fn sums(state: &State, version: &str) -> Result<Response, ApiError> {
    let mut tx = state.read().await?;
    let found = found(&mut tx, version).await;
    tx.rollback().await?;
    let (_, artifacts) = found?;
    let lines: String = artifacts.iter().filter(|one| kind(one) == ArtifactKind::Blob).map(line).collect();
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], lines).into_response())
}

/// As `sha256sum` writes it.
fn line(artifact: &ReleaseArtifact) -> String {
    let digest = artifact.digest.parse::<Digest>();
    digest.map_or_else(|_| String::new(), |digest| format!("{}  {}\n", digest.hex(), artifact.name))
}
