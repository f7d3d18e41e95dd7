//! `POST P/app-artifacts`: makes known what was published, by digest. What the registry has under that digest is read and
//! hashed here before anything is written, and before a transaction is open: a slow registry holds none.

use api_types::{Artifact, Invalid, NewArtifact};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::response::{IntoResponse, Response};
use clients::registry::{Manifest, RegistryFault, Repository};
use domain::event::EventType;
use domain::manifest::ArtifactKind;
use domain::{Digest, ErrorCode, PolicyKey, artifact};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::publish_intents::{self, PublishIntent};
use store::{app_artifacts, app_owners};
use uuid::Uuid;

use super::{place, require_owner, shown, tell};
use crate::body;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

pub(crate) fn register() -> Endpoint {
    Endpoint::new("register_artifact", "Make a published artifact known by its digest", make)
        .body::<NewArtifact>()
        .answers::<Artifact>(201, "The artifact, published and not verified yet; `ETag` tags it.")
        .refuses(&[
            ErrorCode::OwnershipRequired,
            ErrorCode::PolicyDenied,
            ErrorCode::AlreadyExists,
            ErrorCode::DigestMismatch,
            ErrorCode::UpstreamError,
        ])
}

async fn make(Shared(state): Shared<State>, caller: Caller, request: Request) -> Result<Response, Response> {
    let (asked, request) = body::peek::<NewArtifact>(request).await.map_err(ApiError::into_response)?;
    let found = look(&state, &caller, &asked).await.map_err(ApiError::into_response)?;
    let change = Mutation::<NewArtifact>::from_request(request, &state).await?;
    keep(change, &found).await.map_err(ApiError::into_response)
}

/// What there is to register.
struct Found {
    intent: PublishIntent,
    repository: String,
    media_type: String,
    size_bytes: i64,
}

async fn look(state: &State, caller: &Caller, asked: &NewArtifact) -> Result<Found, ApiError> {
    check(asked)?;
    let digest: Digest = asked
        .digest
        .parse()
        .map_err(|why: domain::digest::NotADigest| ApiError::invalid("/digest", why.to_string()))?;
    let mut tx = state.read().await?;
    let intent = intent(&mut tx, caller, asked).await;
    tx.rollback().await?;
    let intent = intent?;
    if intent.expected_digest.as_ref().is_some_and(|expected| *expected != asked.digest) {
        let message = "The intent expects another digest.";
        return Err(
            ApiError::new(ErrorCode::DigestMismatch, message).with("expected", intent.expected_digest)
        );
    }
    let name = intent.repository.clone().unwrap_or_default();
    let repository = state.depot()?.registry.repository(&name);
    let manifest = repository.manifest(digest.as_str()).await.map_err(refused)?;
    fits(asked, &manifest)?;
    if let Some(tag) = &asked.tag {
        points_at(&repository, tag, &digest).await?;
    }
    let size_bytes = i64::try_from(manifest.bytes.len()).unwrap_or(i64::MAX);
    Ok(Found { intent, repository: name, media_type: manifest.media_type, size_bytes })
}

fn check(asked: &NewArtifact) -> Result<(), ApiError> {
    let mut problems = Vec::new();
    let mut problem = |pointer: &str, message: &str| {
        problems.push(Invalid { pointer: pointer.to_owned(), message: message.to_owned() });
    };
    if asked.source_type.is_some_and(|named| named != asked.artifact_kind.source_type()) {
        problem("/source_type", "does not fit the artifact's kind");
    }
    if asked.artifact_kind == ArtifactKind::Blob {
        problem("/artifact_kind", "blobs are not taken by this platform: no artifact store is configured");
    }
    if asked.source_uri.is_some() {
        problem("/source_uri", "is for blobs only");
    }
    if problems.is_empty() { Ok(()) } else { Err(ApiError::listing(ErrorCode::ValidationError, problems)) }
}

/// The permission under which it was published: the repository is the one it names.
async fn intent(
    conn: &mut PgConnection,
    caller: &Caller,
    asked: &NewArtifact,
) -> Result<PublishIntent, ApiError> {
    let (org, project) = place(caller)?;
    require_owner(app_owners::of(conn, &asked.app_slug).await?, project)?;
    let (variant, kind) = (asked.variant.as_deref(), asked.artifact_kind.as_str());
    let (slug, version, name) = (&asked.app_slug, &asked.app_version, &asked.artifact_name);
    let intent = publish_intents::newest_for(conn, project, slug, version, name, variant, kind).await?;
    let Some(intent) = intent else {
        return Err(ApiError::invalid(
            "/artifact_name",
            "has no publish intent of this project; ask for one first",
        ));
    };
    if let (Some(named), Some(granted)) = (&asked.repository, &intent.repository)
        && named != granted
    {
        return Err(ApiError::invalid("/repository", format!("must be {granted}, as the intent says")));
    }
    allowed_source(conn, (org, project), intent.repository.as_deref().unwrap_or_default()).await?;
    Ok(intent)
}

/// Entries of the list that are no addresses are repositories, or what their names begin with.
async fn allowed_source(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    repository: &str,
) -> Result<(), ApiError> {
    let subject = Subject { org: Some(place.0), project: Some(place.1), user: None };
    let list = policies::resolve(conn, PolicyKey::SourceAllowlist, subject).await?.value;
    if artifact::allows_source(&list, repository) {
        return Ok(());
    }
    let message = "The repository is not among the sources that policy allows.";
    Err(ApiError::new(ErrorCode::PolicyDenied, message).with("policy", PolicyKey::SourceAllowlist.as_str()))
}

fn fits(asked: &NewArtifact, manifest: &Manifest) -> Result<(), ApiError> {
    let mut problems = Vec::new();
    let mut problem =
        |pointer: &str, message: String| problems.push(Invalid { pointer: pointer.to_owned(), message });
    if !artifact::MANIFEST_TYPES.contains(&manifest.media_type.as_str()) {
        problem("/media_type", format!("the registry says {}, which is no image", manifest.media_type));
    } else if asked.media_type.as_ref().is_some_and(|named| *named != manifest.media_type) {
        problem("/media_type", format!("the registry says {}", manifest.media_type));
    }
    let size = manifest.bytes.len();
    if asked.size_bytes.is_some_and(|named| usize::try_from(named) != Ok(size)) {
        problem("/size_bytes", format!("the manifest has {size} bytes"));
    }
    if let Err(why) = artifact::check_manifest(&manifest.bytes) {
        problem("/digest", why);
    }
    if problems.is_empty() { Ok(()) } else { Err(ApiError::listing(ErrorCode::ValidationError, problems)) }
}

/// A tag may have been moved since the push; then it names other bytes than the caller believes.
async fn points_at(repository: &Repository, tag: &str, digest: &Digest) -> Result<(), ApiError> {
    let tagged = repository.manifest(tag).await.map_err(refused)?;
    if tagged.digest == *digest {
        return Ok(());
    }
    let message = format!("The tag {tag} points at another digest by now.");
    Err(ApiError::new(ErrorCode::DigestMismatch, message).with("tag_digest", tagged.digest.as_str()))
}

fn refused(fault: RegistryFault) -> ApiError {
    match fault {
        RegistryFault::Absent { .. } | RegistryFault::TooLarge { .. } => {
            ApiError::invalid("/digest", fault.to_string())
        }
        RegistryFault::Mismatch { asked, found } => {
            let message = "The registry has other bytes under this digest.";
            ApiError::new(ErrorCode::DigestMismatch, message)
                .with("asked", asked.as_str())
                .with("found", found.as_str())
        }
        RegistryFault::Unavailable(why) => {
            tracing::warn!(why, "the image registry did not answer");
            ApiError::unavailable("The image registry does not answer right now.")
        }
        RegistryFault::Refused(why) | RegistryFault::StorageFull(why) => {
            tracing::warn!(why, "the image registry refused");
            ApiError::new(ErrorCode::UpstreamError, "The image registry refused to show the manifest.")
        }
    }
}

async fn keep(mut change: Mutation<NewArtifact>, found: &Found) -> Result<Response, ApiError> {
    let (org, project) = place(&change.caller)?;
    let asked = &change.body;
    let before = app_artifacts::find_published(
        &mut change.tx,
        &asked.app_slug,
        &asked.app_version,
        &asked.artifact_name,
        asked.variant.as_deref(),
        &asked.digest,
    );
    if let Some(id) = before.await? {
        let message = "These bytes are registered for this version already.";
        return Err(ApiError::new(ErrorCode::AlreadyExists, message).with("artifact_id", id.to_string()));
    }
    let (id, correlation_id) = (Uuid::now_v7(), change.caller.context.correlation_id.to_string());
    let new = app_artifacts::NewArtifact {
        id,
        org_id: org,
        project_id: project,
        app_slug: &asked.app_slug,
        app_version: &asked.app_version,
        artifact_name: &asked.artifact_name,
        variant: asked.variant.as_deref(),
        artifact_kind: asked.artifact_kind.as_str(),
        source_type: asked.artifact_kind.source_type().as_str(),
        repository: Some(&found.repository),
        source_uri: None,
        tag: asked.tag.as_deref(),
        digest: &asked.digest,
        media_type: &found.media_type,
        size_bytes: found.size_bytes,
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
