//! `P/app-artifacts`: what an app runs, by digest. Only the project that owns an app publishes for it. Image bytes never
//! come through here: an intent gives a credential, the image goes to the registry, and its digest is registered.

mod credential;
mod publish_intent;
mod pull_intent;
mod read;
mod register;
mod revoke;
mod verify;

pub(crate) use publish_intent::publish_intent;
pub(crate) use pull_intent::pull_intent;
pub(crate) use read::{list, show};
pub(crate) use register::register;
pub(crate) use revoke::revoke;
pub(crate) use verify::verify;

use api_types::Artifact;
use domain::ErrorCode;
use domain::artifact::{Channel, Lifecycle, Trust};
use domain::event::{EventType, NewEvent};
use domain::manifest::{ArtifactKind, SourceType};
use sqlx::PgConnection;
use store::app_artifacts::AppArtifact;
use store::outbox;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ApiError;

/// Organization and project of the path.
fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    match (caller.scope.org(), caller.scope.project()) {
        (Some(org), Some(project)) => Ok((org, project)),
        _ => Err(ApiError::internal(&"a route of projects outside of one")),
    }
}

/// Nobody's yet is anybody's who may publish here.
fn require_owner(owner: Option<Uuid>, project: Uuid) -> Result<(), ApiError> {
    if owner.is_none_or(|owner| owner == project) {
        return Ok(());
    }
    let message = "Only the project that owns the app publishes artifacts for it.";
    Err(ApiError::new(ErrorCode::OwnershipRequired, message))
}

fn shown(row: AppArtifact) -> Result<Artifact, ApiError> {
    let (lifecycle_state, trust_state) = (row.lifecycle()?, row.trust()?);
    let blob = row.artifact_kind == ArtifactKind::Blob.as_str();
    let artifact_kind = if blob { ArtifactKind::Blob } else { ArtifactKind::Oci };
    Ok(Artifact {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        app_slug: row.app_slug,
        app_version: row.app_version,
        artifact_name: row.artifact_name,
        variant: row.variant,
        artifact_kind,
        source_type: if blob { SourceType::ArtifactStore } else { SourceType::OciRegistry },
        repository: row.repository,
        source_uri: row.source_uri,
        tag: row.tag,
        digest: row.digest,
        digest_algorithm: "sha256".to_owned(),
        media_type: row.media_type,
        size_bytes: row.size_bytes,
        visibility: row.visibility,
        lifecycle_state,
        trust_state,
        channels: row.channels.iter().filter_map(|word| word.parse::<Channel>().ok()).collect(),
        evidence: serde_json::from_value(row.evidence).unwrap_or_default(),
        allowed_actions: allowed(lifecycle_state, trust_state),
        correlation_id: row.correlation_id,
        created_by: row.created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

fn allowed(lifecycle: Lifecycle, trust: Trust) -> Vec<String> {
    let revoked = trust == Trust::Revoked;
    let of_trust: &[&str] = if revoked { &[] } else { &["verify", "revoke"] };
    let of_life = lifecycle.allowed().iter().filter(|act| !revoked || **act != "promote");
    of_trust.iter().chain(of_life).map(|act| (*act).to_owned()).collect()
}

/// What subscribers hear of an artifact.
async fn tell(
    conn: &mut PgConnection,
    caller: &Caller,
    kind: EventType,
    artifact: &AppArtifact,
) -> Result<(), ApiError> {
    let owner = (artifact.org_id, artifact.project_id);
    let correlation_id = caller.context.correlation_id.as_str();
    let event = NewEvent::of_project(owner, kind, artifact.id, &artifact.told(), correlation_id);
    outbox::insert(conn, &event).await?;
    Ok(())
}
