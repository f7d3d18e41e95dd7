//! `POST P/app-artifacts`: makes known what was published, by digest. What lies in the registry or the store is read and
//! hashed here before anything is written, and before a transaction is open: a slow registry holds none.

mod found;

use api_types::{Artifact, NewArtifact};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use domain::artifact::Trust;
use domain::event::EventType;
use sqlx::PgConnection;
use store::app_artifacts::{self, Slot};
use store::{publish_intents, registry_pushes};
use uuid::Uuid;

use self::found::{Found, look};
use super::{place, shown, tell};
use crate::body;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{self, Answer, Change, Mutation};
use crate::state::State;

pub(crate) fn register() -> Endpoint {
    Endpoint::new("register_artifact", "Make a published artifact known by its digest", make)
        .body::<NewArtifact>()
        .answers::<Artifact>(201, "The artifact, published and not verified yet; `ETag` tags it.")
        .refuses(&[
            ErrorCode::AppNotFound,
            ErrorCode::OwnershipRequired,
            ErrorCode::PolicyDenied,
            ErrorCode::AlreadyExists,
            ErrorCode::OperationInProgress,
            ErrorCode::DigestMismatch,
            ErrorCode::ArtifactUntrusted,
            ErrorCode::UpstreamError,
        ])
        // A blob is read to its end.
        .takes_its_time()
}

async fn make(Shared(state): Shared<State>, caller: Caller, request: Request) -> Result<Response, Response> {
    let request = mutation::unanswered(request, &caller, &state).await?;
    let (asked, request) = body::peek::<NewArtifact>(request).await.map_err(ApiError::into_response)?;
    let found = look(&state, &caller, &asked).await.map_err(ApiError::into_response)?;
    let change = Mutation::<NewArtifact>::from_request(request, &state).await?;
    keep(change, &found).await.map_err(ApiError::into_response)
}

fn slot(asked: &NewArtifact) -> Slot<'_> {
    Slot {
        app_slug: &asked.app_slug,
        app_version: &asked.app_version,
        artifact_name: &asked.artifact_name,
        variant: asked.variant.as_deref(),
        kind: asked.artifact_kind,
    }
}

/// Bytes that were revoked for the app stay revoked, and bytes that were read may be deleted meanwhile, with a retired
/// artifact that had them too or because nobody registered them for so long.
async fn may_be_used(
    conn: &mut PgConnection,
    project: Uuid,
    asked: &NewArtifact,
    found: &Found,
) -> Result<(), ApiError> {
    let digests: Vec<String> = found.children.iter().chain([&asked.digest]).cloned().collect();
    if app_artifacts::any_revoked(conn, project, &asked.app_slug, &digests).await? {
        let message = "These bytes are revoked for the app, for good.";
        return Err(
            ApiError::new(ErrorCode::ArtifactUntrusted, message).with("state", Trust::Revoked.as_str())
        );
    }
    let Some(repository) = &found.intent.repository else { return Ok(()) };
    if !app_artifacts::may_be_gone(conn, repository, &digests, found.since).await?
        && !condemned(conn, repository, &digests, found).await?
    {
        return Ok(());
    }
    let message = "These bytes are being deleted, as nothing needed them. Push them again in a moment.";
    Err(ApiError::new(ErrorCode::OperationInProgress, message).retry_after(10))
}

/// Whether any is on its way out as something that nobody registered. What was pushed again since is not, once nobody is at
/// work on it.
async fn condemned(
    conn: &mut PgConnection,
    repository: &str,
    digests: &[String],
    found: &Found,
) -> Result<bool, ApiError> {
    if !registry_pushes::may_be_gone(conn, repository, digests, found.since).await? {
        return Ok(false);
    }
    registry_pushes::forgive(conn, repository, digests).await?;
    Ok(registry_pushes::may_be_gone(conn, repository, digests, found.since).await?)
}

async fn keep(mut change: Mutation<NewArtifact>, found: &Found) -> Result<Response, ApiError> {
    let (org, project) = place(&change.caller)?;
    let asked = &change.body;
    let home = app_artifacts::home(found.intent.repository.as_deref(), project, &asked.app_slug);
    app_artifacts::hold(&mut change.tx, &home).await?;
    if let Some(id) = app_artifacts::find_published(&mut change.tx, &slot(asked), &asked.digest).await? {
        let message = "These bytes are registered for this version already.";
        return Err(ApiError::new(ErrorCode::AlreadyExists, message).with("artifact_id", id.to_string()));
    }
    may_be_used(&mut change.tx, project, asked, found).await?;
    if !publish_intents::hold_open(&mut change.tx, found.intent.id).await? {
        let why = "has no publish intent of this project any more; ask for one first";
        return Err(ApiError::invalid("/artifact_name", why));
    }
    let (id, correlation_id) = (Uuid::now_v7(), change.caller.context.correlation_id.to_string());
    let new = app_artifacts::NewArtifact {
        id,
        org_id: org,
        project_id: project,
        slot: slot(asked),
        repository: found.intent.repository.as_deref(),
        source_uri: found.intent.source_uri.as_deref(),
        tag: asked.tag.as_deref(),
        digest: &asked.digest,
        children: &found.children,
        media_type: &found.media_type,
        size_bytes: found.size_bytes,
        signature: asked.signature.as_deref(),
        provenance: asked.provenance.as_deref(),
        intent_id: found.intent.id,
        created_by: change.caller.principal().id,
        correlation_id: &correlation_id,
    };
    app_artifacts::insert(&mut change.tx, &new).await?;
    let row = app_artifacts::find(&mut change.tx, id).await?;
    let row = row.ok_or_else(|| ApiError::internal(&"the new artifact is gone"))?;
    tell(&mut change.tx, &change.caller, EventType::ArtifactPublished, &row).await?;
    let artifact = shown(row)?;
    let location = format!("/api/v1/projects/{project}/app-artifacts/{id}");
    let told = Change::of("artifact", id).to(&artifact);
    change.commit(told, Answer::created(location, &artifact)?.tagged()).await
}
