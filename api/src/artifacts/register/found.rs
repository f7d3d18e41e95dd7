//! What there is to register: the intent under which it was published, and the bytes that lie where the intent said.

use api_types::NewArtifact;
use chrono::{DateTime, Utc};
use clients::blobs::BlobName;
use clients::registry::{Manifest, RegistryFault, Repository};
use domain::manifest::ArtifactKind;
use domain::{Digest, ErrorCode, PolicyKey, artifact};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::publish_intents::{self, PublishIntent};
use store::{app_artifacts, version_artifacts};
use uuid::Uuid;

use super::slot;
use crate::artifacts::{Problems, place, require_owner};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::state::State;
use crate::uploads;

const ANY_BYTES: &str = "application/octet-stream";

pub(super) struct Found {
    pub(super) intent: PublishIntent,
    pub(super) media_type: String,
    pub(super) size_bytes: i64,
    pub(super) children: Vec<String>,
    /// Before the bytes were read, by the database's clock.
    pub(super) since: DateTime<Utc>,
}

pub(super) async fn look(state: &State, caller: &Caller, asked: &NewArtifact) -> Result<Found, ApiError> {
    check(asked)?;
    let digest: Digest = asked
        .digest
        .parse()
        .map_err(|why: domain::digest::NotADigest| ApiError::invalid("/digest", why.to_string()))?;
    let mut tx = state.read().await?;
    let since = app_artifacts::now(&mut tx).await?;
    let intent = intent(&mut tx, caller, asked).await;
    let declared = version_artifacts::expected_digest(&mut tx, &slot(asked)).await;
    tx.rollback().await?;
    let intent = intent?;
    expected(asked, "intent", intent.expected_digest.as_deref())?;
    expected(asked, "version's manifest", declared?.as_deref())?;
    match asked.artifact_kind {
        ArtifactKind::Oci => image(state, asked, &digest, intent, since).await,
        ArtifactKind::Blob => blob(state, asked, &digest, intent, since).await,
    }
}

fn expected(asked: &NewArtifact, whose: &str, expected: Option<&str>) -> Result<(), ApiError> {
    match expected {
        Some(expected) if expected != asked.digest => {
            let message = format!("The {whose} expects another digest.");
            Err(ApiError::new(ErrorCode::DigestMismatch, message).with("expected", expected))
        }
        _ => Ok(()),
    }
}

fn check(asked: &NewArtifact) -> Result<(), ApiError> {
    let mut problems = Problems::default();
    if asked.source_type.is_some_and(|named| named != asked.artifact_kind.source_type()) {
        problems.add("/source_type", "does not fit the artifact's kind");
    }
    let is_blob = asked.artifact_kind == ArtifactKind::Blob;
    if !is_blob && asked.source_uri.is_some() {
        problems.add("/source_uri", "is for blobs only");
    }
    if !is_blob && asked.signature.is_some() {
        problems.add("/signature", "is for blobs only: an image's lies beside it in the registry");
    }
    if !is_blob && asked.provenance.is_some() {
        problems.add("/provenance", "is for blobs only: an image's lies beside it in the registry");
    }
    if is_blob && asked.repository.is_some() {
        problems.add("/repository", "is for images only");
    }
    if is_blob && asked.tag.is_some() {
        problems.add("/tag", "is for images only");
    }
    problems.finish()
}

/// The permission under which it was published: the repository, or the address, is the one it names.
async fn intent(
    conn: &mut PgConnection,
    caller: &Caller,
    asked: &NewArtifact,
) -> Result<PublishIntent, ApiError> {
    let (org, project) = place(caller)?;
    require_owner(conn, &asked.app_slug, project).await?;
    let named = asked.intent_id;
    let intent = publish_intents::find_for(conn, project, &slot(asked), &asked.digest, named).await?;
    let Some(intent) = intent else {
        return Err(match named {
            Some(_) => ApiError::invalid("/intent_id", "is no open intent of this project for this artifact"),
            None => {
                let why = "has no publish intent of this project; ask for one first";
                ApiError::invalid("/artifact_name", why)
            }
        });
    };
    for (pointer, named, granted) in [
        ("/repository", &asked.repository, &intent.repository),
        ("/source_uri", &asked.source_uri, &intent.source_uri),
    ] {
        if let (Some(named), Some(granted)) = (named, granted)
            && named != granted
        {
            return Err(ApiError::invalid(pointer, format!("must be {granted}, as the intent says")));
        }
    }
    if let Some(source) = intent.repository.as_ref().or(intent.source_uri.as_ref()) {
        allowed_source(conn, (org, project), source).await?;
    }
    Ok(intent)
}

/// A repository, or where a blob is.
async fn allowed_source(conn: &mut PgConnection, place: (Uuid, Uuid), source: &str) -> Result<(), ApiError> {
    let subject = Subject { org: Some(place.0), project: Some(place.1), user: None };
    let list = policies::resolve(conn, PolicyKey::SourceAllowlist, subject).await?.value;
    if artifact::allows_source(&artifact::sources_among(&list), source) {
        return Ok(());
    }
    let message = format!("{source} is not among the sources that policy allows.");
    Err(ApiError::new(ErrorCode::PolicyDenied, message).with("policy", PolicyKey::SourceAllowlist.as_str()))
}

async fn blob(
    state: &State,
    asked: &NewArtifact,
    digest: &Digest,
    intent: PublishIntent,
    since: DateTime<Utc>,
) -> Result<Found, ApiError> {
    let missing = || ApiError::unavailable("No artifact store is configured.");
    let blobs = state.depot()?.blobs.as_ref().ok_or_else(missing)?;
    let name = BlobName {
        key: artifact::key_of(intent.source_uri.as_deref().unwrap_or_default()).to_owned(),
        intent: intent.id,
    };
    let most = u64::try_from(intent.max_bytes.unwrap_or_default()).unwrap_or_default();
    let size = blobs.accept(&name, digest, most).await.map_err(uploads::refused)?;
    let size_bytes = i64::try_from(size).unwrap_or(i64::MAX);
    if asked.size_bytes.is_some_and(|named| named != size_bytes) {
        return Err(ApiError::invalid("/size_bytes", format!("the blob has {size} bytes")));
    }
    let media_type = asked.media_type.clone().unwrap_or_else(|| ANY_BYTES.to_owned());
    Ok(Found { intent, media_type, size_bytes, children: Vec::new(), since })
}

async fn image(
    state: &State,
    asked: &NewArtifact,
    digest: &Digest,
    intent: PublishIntent,
    since: DateTime<Utc>,
) -> Result<Found, ApiError> {
    let repository = state.depot()?.registry.repository(intent.repository.as_deref().unwrap_or_default());
    let manifest = repository.manifest(digest.as_str()).await.map_err(refused)?;
    let children = fits(asked, &manifest)?;
    for child in &children {
        let below = repository.manifest(child.as_str()).await.map_err(refused)?;
        artifact::check_child(child, &below.bytes).map_err(|why| ApiError::invalid("/digest", why))?;
    }
    let children = children.iter().map(ToString::to_string).collect();
    if let Some(tag) = &asked.tag {
        points_at(&repository, tag, digest).await?;
    }
    let size_bytes = i64::try_from(manifest.bytes.len()).unwrap_or(i64::MAX);
    Ok(Found { intent, media_type: manifest.media_type, size_bytes, children, since })
}

/// The manifests that it names, if it is what was said.
fn fits(asked: &NewArtifact, manifest: &Manifest) -> Result<Vec<Digest>, ApiError> {
    let mut problems = Problems::default();
    if !artifact::MANIFEST_TYPES.contains(&manifest.media_type.as_str()) {
        problems.add("/media_type", format!("the registry says {}, which is no image", manifest.media_type));
    } else if asked.media_type.as_ref().is_some_and(|named| *named != manifest.media_type) {
        problems.add("/media_type", format!("the registry says {}", manifest.media_type));
    }
    let size = manifest.bytes.len();
    if asked.size_bytes.is_some_and(|named| usize::try_from(named) != Ok(size)) {
        problems.add("/size_bytes", format!("the manifest has {size} bytes"));
    }
    let children = artifact::check_manifest(&manifest.bytes).unwrap_or_else(|why| {
        problems.add("/digest", why);
        Vec::new()
    });
    problems.finish().map(|()| children)
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
        RegistryFault::Refused(why) | RegistryFault::StorageFull(why) | RegistryFault::Unreadable(why) => {
            tracing::warn!(why, "the image registry refused");
            ApiError::new(ErrorCode::UpstreamError, "The image registry refused to show the manifest.")
        }
    }
}
