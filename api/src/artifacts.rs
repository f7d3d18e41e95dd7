//! `P/app-artifacts`: what an app runs, by digest. Only the project that owns an app publishes for it. Image bytes never
//! come through here: an intent gives a credential, the image goes to the registry, and its digest is registered.

mod actions;
mod credential;
mod publish_intent;
mod pull_intent;
mod read;
mod register;
mod revoke;
mod verify;

pub(crate) use publish_intent::publish_intent;
pub(crate) use pull_intent::{Pull, issue as issue_pull, pull_intent};
pub(crate) use read::{list, show};
pub(crate) use register::register;
pub(crate) use revoke::revoke;
pub(crate) use verify::verify;

use api_types::{Artifact, ArtifactSlot, Invalid};
use domain::ErrorCode;
use domain::artifact::{Channel, Trust};
use domain::event::{EventType, NewEvent};
use domain::manifest::ArtifactKind;
use sqlx::PgConnection;
use store::app_artifacts::AppArtifact;
use store::{apps, outbox};
use uuid::Uuid;
use workflows::action::allowed_actions;

use crate::caller::Caller;
use crate::error::ApiError;

/// Organization and project of the path.
fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    match (caller.scope.org(), caller.scope.project()) {
        (Some(org), Some(project)) => Ok((org, project)),
        _ => Err(ApiError::internal(&"a route of projects outside of one")),
    }
}

/// The catalog says whose an app is; that never changes.
async fn require_owner(conn: &mut PgConnection, app_slug: &str, project: Uuid) -> Result<(), ApiError> {
    let app = apps::find(conn, app_slug).await?;
    let app = app.ok_or_else(|| ApiError::plain(ErrorCode::AppNotFound))?;
    if app.owner_project_id == project {
        return Ok(());
    }
    let message = "Only the project that owns the app publishes artifacts for it.";
    Err(ApiError::new(ErrorCode::OwnershipRequired, message))
}

/// All that is wrong with a request, told at once.
#[derive(Default)]
pub(crate) struct Problems(Vec<Invalid>);

impl Problems {
    pub(crate) fn add(&mut self, pointer: &str, message: impl Into<String>) {
        self.0.push(Invalid { pointer: pointer.to_owned(), message: message.into() });
    }

    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.0.is_empty() { Ok(()) } else { Err(ApiError::listing(ErrorCode::ValidationError, self.0)) }
    }
}

fn shown(row: AppArtifact) -> Result<Artifact, ApiError> {
    let (lifecycle_state, trust_state) = (row.lifecycle()?, row.trust()?);
    let allowed_actions = offered(&row, trust_state).into_iter().map(str::to_owned).collect();
    let is_blob = row.artifact_kind == ArtifactKind::Blob.as_str();
    let artifact_kind = if is_blob { ArtifactKind::Blob } else { ArtifactKind::Oci };
    Ok(Artifact {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        slot: ArtifactSlot {
            app_slug: row.app_slug,
            app_version: row.app_version,
            artifact_name: row.artifact_name,
            variant: row.variant,
            artifact_kind,
            source_type: artifact_kind.source_type(),
        },
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
        allowed_actions,
        correlation_id: row.correlation_id,
        created_by: row.created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

/// What the register of actions offers, and what is asked of trust. What is revoked goes nowhere but out.
fn offered(artifact: &AppArtifact, trust: Trust) -> Vec<&'static str> {
    let revoked = trust == Trust::Revoked;
    let of_trust: &[&'static str] = if revoked { &[] } else { &["verify", "revoke"] };
    let of_life = allowed_actions(artifact).into_iter().filter(|act| !revoked || *act != "promote");
    of_trust.iter().copied().chain(of_life).collect()
}

/// What subscribers hear of an artifact.
async fn tell(
    conn: &mut PgConnection,
    caller: &Caller,
    kind: EventType,
    artifact: &AppArtifact,
) -> Result<(), ApiError> {
    let owner = (artifact.org_id, artifact.project_id);
    let event = NewEvent::of_project(owner, kind, artifact.id, &artifact.told(), caller.context.thread());
    outbox::insert(conn, &event).await?;
    Ok(())
}
