//! `platform/releases`: what the platform itself ships, for everybody who is signed in. A release names artifacts that
//! were published and verified like any other; only those can be had that are still trusted.

mod create;
mod download;
mod pull_intent;

pub(crate) use create::create;
pub(crate) use download::download;
pub(crate) use pull_intent::pull_intent;

use api_types::{Page, PlatformArtifact, PlatformRelease};
use axum::extract::{Path, State as Shared};
use domain::ErrorCode;
use domain::artifact::Trust;
use domain::manifest::ArtifactKind;
use sqlx::PgConnection;
use store::app_artifacts::AppArtifact;
use store::platform_releases::{self as table, Release, ReleaseArtifact};
use uuid::Uuid;

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_platform_releases", "Releases of the platform, newest first", all)
        .answers_page::<PlatformRelease>("A page of releases.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_platform_release", "A release of the platform", one)
        .answers::<PlatformRelease>(200, "The release.")
        .refuses(&[ErrorCode::ReleaseNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    mut params: Params,
) -> Result<Json<Page<PlatformRelease>>, ApiError> {
    let paging = Paging::read(&mut params, "pr1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, paging.slice()).await?;
    let ids: Vec<Uuid> = rows.iter().map(|release| release.id).collect();
    let artifacts = table::artifacts_of(&mut tx, &ids).await?;
    tx.rollback().await?;
    let page = paging.page(rows, |row| row.id, |release| shown(release, &artifacts));
    let items = page.items.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Json(Page { items, next_cursor: page.next_cursor }))
}

async fn one(
    Shared(state): Shared<State>,
    Path(version): Path<String>,
    params: Params,
) -> Result<Json<PlatformRelease>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let found = found(&mut tx, &version).await;
    tx.rollback().await?;
    let (release, artifacts) = found?;
    Ok(Json(shown(release, &artifacts)?))
}

async fn found(conn: &mut PgConnection, version: &str) -> Result<(Release, Vec<ReleaseArtifact>), ApiError> {
    let release = table::find(conn, version).await?;
    let release = release.ok_or_else(|| ApiError::plain(ErrorCode::ReleaseNotFound))?;
    let artifacts = table::artifacts_of(conn, &[release.id]).await?;
    Ok((release, artifacts))
}

/// One of a release, by its name there.
async fn named(conn: &mut PgConnection, version: &str, name: &str) -> Result<ReleaseArtifact, ApiError> {
    let (_, artifacts) = found(conn, version).await?;
    let artifact = artifacts.into_iter().find(|artifact| artifact.name == name);
    artifact.ok_or_else(|| ApiError::plain(ErrorCode::ArtifactNotFound))
}

/// What was published as trusted may not be any more: revoked, or found to be other bytes than it says.
fn require_trusted(artifact: &AppArtifact) -> Result<(), ApiError> {
    if matches!(artifact.trust()?, Trust::Revoked | Trust::FailedVerification) {
        let state = artifact.trust_state.clone();
        return Err(ApiError::plain(ErrorCode::ArtifactUntrusted).with("state", state));
    }
    Ok(())
}

fn shown(release: Release, artifacts: &[ReleaseArtifact]) -> Result<PlatformRelease, ApiError> {
    let own = artifacts.iter().filter(|artifact| artifact.release_id == release.id);
    let artifacts =
        own.map(|artifact| shown_artifact(&release.version, artifact)).collect::<Result<_, _>>()?;
    Ok(PlatformRelease {
        id: release.id,
        version: release.version,
        release_notes: release.release_notes,
        artifacts,
        created_at: release.created_at,
    })
}

fn shown_artifact(version: &str, artifact: &ReleaseArtifact) -> Result<PlatformArtifact, ApiError> {
    let artifact_kind = kind(artifact);
    let name = &artifact.name;
    let path = format!("/api/v1/platform/releases/{version}/artifacts/{name}/download");
    Ok(PlatformArtifact {
        name: name.clone(),
        artifact_kind,
        digest: artifact.digest.clone(),
        media_type: artifact.media_type.clone(),
        size_bytes: artifact.size_bytes,
        trust_state: artifact.trust_state.parse::<Trust>().map_err(|error| ApiError::internal(&error))?,
        download_path: (artifact_kind == ArtifactKind::Blob).then_some(path),
    })
}

fn kind(artifact: &ReleaseArtifact) -> ArtifactKind {
    if artifact.artifact_kind == ArtifactKind::Blob.as_str() { ArtifactKind::Blob } else { ArtifactKind::Oci }
}
