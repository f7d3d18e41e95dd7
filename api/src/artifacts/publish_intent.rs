//! `POST P/app-artifacts/publish-intents`: the permission to publish one artifact of a version. The platform decides where
//! it goes. An image's credential reaches its repository and nothing else, a blob's address one upload, until the intent
//! expires.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::{ArtifactSlot, NewPublishIntent, PublishIntent, WrappedCredential};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use clients::blobs::{Blobs, SignedUpload};
use domain::artifact::{Lifecycle, Trust};
use domain::manifest::ArtifactKind;
use domain::{Digest, ErrorCode, artifact};
use rand::Rng;
use rand::distr::Alphanumeric;
use sha2::{Digest as _, Sha256};
use sqlx::PgConnection;
use store::app_artifacts::{self, Slot};
use store::policies::Subject;
use store::publish_intents::{self, Destination, NewIntent};
use store::{projects, signing_keys, trust_demands, version_artifacts};
use uuid::Uuid;

use super::{Problems, credential, place, require_owner};
use crate::depot::Depot;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

const HOUR: i32 = 3600;
pub(super) const SIGNATURE_SCHEME: &str = "cosign-ecdsa-p256";
/// Unless more is asked for. A bucket takes and copies no more in one piece.
const LARGEST_BLOB: i64 = 5 << 30;
/// 256 random bits and more.
const TOKEN_LENGTH: usize = 43;

pub(crate) fn publish_intent() -> Endpoint {
    Endpoint::new("create_publish_intent", "Ask for the permission to publish an artifact", make)
        .body::<NewPublishIntent>()
        .answers::<PublishIntent>(201, "Where to publish, and a credential that is told this once.")
        .refuses(&[
            ErrorCode::AppNotFound,
            ErrorCode::OwnershipRequired,
            ErrorCode::StateConflict,
            ErrorCode::OperationInProgress,
            ErrorCode::ArtifactUntrusted,
        ])
}

async fn make(
    Shared(state): Shared<State>,
    mut change: Mutation<NewPublishIntent>,
) -> Result<Response, ApiError> {
    let depot = state.depot()?;
    let place = place(&change.caller)?;
    check(&change.body, depot)?;
    require_owner(&mut change.tx, &change.body.app_slug, place.1).await?;
    check_key(&mut change.tx, place.1, change.body.signing_key_id).await?;
    expect_as_declared(&mut change.tx, &mut change.body).await?;
    may_come_again(&mut change.tx, place.1, &change.body).await?;
    let (by, correlation_id) =
        (change.caller.principal().id, change.caller.context.correlation_id.to_string());
    let asker = Asker { place, by, correlation_id: &correlation_id };
    let body = match change.body.artifact_kind {
        ArtifactKind::Oci => image(depot, &mut change.tx, &asker, &change.body).await?,
        ArtifactKind::Blob => blob(depot, &mut change.tx, &asker, &change.body).await?,
    };
    let mut told = body.clone();
    (told.credential, told.upload_path, told.upload_headers) = (None, None, None);
    let told = Change::of("publish_intent", body.id).to(&told);
    let answer = Answer::json(StatusCode::CREATED, &body)?.once(&["credential.token", "upload_path"]);
    change.commit(told, answer).await
}

/// Who asks, and where.
struct Asker<'a> {
    place: (Uuid, Uuid),
    by: Uuid,
    correlation_id: &'a str,
}

/// What the schema cannot say: fields that do not go together.
fn check(asked: &NewPublishIntent, depot: &Depot) -> Result<(), ApiError> {
    let mut problems = Problems::default();
    if asked.source_type.is_some_and(|named| named != asked.artifact_kind.source_type()) {
        problems.add("/source_type", "does not fit the artifact's kind");
    }
    let is_blob = asked.artifact_kind == ArtifactKind::Blob;
    if is_blob && depot.blobs.is_none() {
        problems
            .add("/artifact_kind", "blobs are not taken by this platform: no artifact store is configured");
    }
    let in_bucket = matches!(depot.blobs, Some(Blobs::S3(_)));
    if is_blob && in_bucket && asked.max_bytes.is_some_and(|most| most > LARGEST_BLOB) {
        let why = format!(
            "must be at most {LARGEST_BLOB}: this platform keeps blobs in a bucket, in one piece each"
        );
        problems.add("/max_bytes", why);
    }
    if !is_blob && asked.max_bytes.is_some() {
        problems.add("/max_bytes", "is for blobs only");
    }
    problems.finish()
}

async fn check_key(conn: &mut PgConnection, project: Uuid, id: Option<Uuid>) -> Result<(), ApiError> {
    let Some(id) = id else { return Ok(()) };
    let key = signing_keys::find_locked(conn, project, id).await?;
    match key.filter(|key| key.retired_at.is_none()) {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid("/signing_key_id", "is not a live signing key of this project")),
    }
}

/// Where the version's manifest names the only digest it takes, the intent does too.
async fn expect_as_declared(conn: &mut PgConnection, asked: &mut NewPublishIntent) -> Result<(), ApiError> {
    let Some(declared) = version_artifacts::expected_digest(conn, &slot(asked)).await? else { return Ok(()) };
    if asked.expected_digest.as_ref().is_some_and(|asked| *asked != declared) {
        let why = format!("the version's manifest takes only {declared}");
        return Err(ApiError::invalid("/expected_digest", why));
    }
    asked.expected_digest = Some(declared);
    Ok(())
}

/// Whoever says which bytes they will publish hears before the push, and not after it, that they cannot be registered:
/// revoked for good, or retired and not deleted yet.
async fn may_come_again(
    conn: &mut PgConnection,
    project: Uuid,
    asked: &NewPublishIntent,
) -> Result<(), ApiError> {
    let Some(digest) = asked.expected_digest.clone() else { return Ok(()) };
    let digests = [digest];
    if app_artifacts::any_revoked(conn, project, &asked.app_slug, &digests).await? {
        let message = "These bytes are revoked for the app, for good.";
        let state = Trust::Revoked.as_str();
        return Err(ApiError::new(ErrorCode::ArtifactUntrusted, message).with("state", state));
    }
    if asked.artifact_kind == ArtifactKind::Oci {
        let repository = artifact::repository(&projects::slug_of(conn, project).await?, &asked.app_slug);
        let now = app_artifacts::now(conn).await?;
        if app_artifacts::may_be_gone(conn, &repository, &digests, now).await? {
            let message = "These bytes were retired and are being deleted. Publish them again in a moment.";
            return Err(ApiError::new(ErrorCode::OperationInProgress, message).retry_after(10));
        }
    }
    let Some(id) = app_artifacts::find_published(conn, &slot(asked), &digests[0]).await? else {
        return Ok(());
    };
    let known = app_artifacts::find(conn, id).await?;
    match known.filter(|known| known.lifecycle().is_ok_and(|state| state == Lifecycle::Retired)) {
        None => Ok(()),
        Some(retired) => {
            let message = "These bytes are retired for this version. They can be published again once they are deleted, \
                           when their grace period is over; until then publish them for another version.";
            Err(ApiError::new(ErrorCode::StateConflict, message)
                .with("artifact_id", retired.id.to_string())
                .with("state", retired.lifecycle_state)
                .with("allowed_actions", serde_json::json!([])))
        }
    }
}

async fn image(
    depot: &Depot,
    conn: &mut PgConnection,
    asker: &Asker<'_>,
    asked: &NewPublishIntent,
) -> Result<PublishIntent, ApiError> {
    let slug = projects::slug_of(conn, asker.place.1).await?;
    let (repository, tag) = (artifact::repository(&slug, &asked.app_slug), tag(asked));
    let mut body = kept(conn, asker, asked, Destination::Repository { name: &repository, tag: &tag }).await?;
    let ttl_seconds = asked.ttl_seconds.unwrap_or(HOUR);
    let reach = credential::For {
        id: body.id,
        place: asker.place,
        repository: &repository,
        may_push: true,
        ttl_seconds,
    };
    let credential: WrappedCredential = credential::give(depot, conn, &reach).await?;
    body.registry = Some(depot.registry.host.clone());
    body.credential = Some(credential);
    Ok(body)
}

async fn blob(
    depot: &Depot,
    conn: &mut PgConnection,
    asker: &Asker<'_>,
    asked: &NewPublishIntent,
) -> Result<PublishIntent, ApiError> {
    let source_uri =
        artifact::source_uri(asker.place.1, &asked.app_slug, &asked.app_version, &asked.artifact_name);
    let token: String = rand::rng().sample_iter(Alphanumeric).take(TOKEN_LENGTH).map(char::from).collect();
    let hash = Sha256::digest(&token).to_vec();
    let max_bytes = asked.max_bytes.unwrap_or(LARGEST_BLOB);
    let destination = |upload_hash| Destination::Store { source_uri: &source_uri, max_bytes, upload_hash };
    let upload = |mut body: PublishIntent, signed: SignedUpload| {
        body.upload_path = Some(signed.url);
        body.upload_method = Some("PUT".to_owned());
        body.upload_headers = Some(signed.headers);
        body
    };
    match &depot.blobs {
        Some(Blobs::S3(s3)) => {
            let body = kept(conn, asker, asked, destination(None)).await?;
            let digest: Option<Digest> =
                asked.expected_digest.as_ref().and_then(|digest| digest.parse().ok());
            let lifetime =
                Duration::from_secs(u64::try_from(asked.ttl_seconds.unwrap_or(HOUR)).unwrap_or_default());
            let signed =
                s3.sign(body.id, digest.as_ref(), lifetime).await.map_err(crate::uploads::refused)?;
            Ok(upload(body, signed))
        }
        _ => {
            let body = kept(conn, asker, asked, destination(Some(&hash[..]))).await?;
            Ok(upload(body, SignedUpload { url: format!("/uploads/{token}"), headers: BTreeMap::new() }))
        }
    }
}

/// Writes the intent, and answers what is common to both kinds.
async fn kept(
    conn: &mut PgConnection,
    asker: &Asker<'_>,
    asked: &NewPublishIntent,
    destination: Destination<'_>,
) -> Result<PublishIntent, ApiError> {
    let (org_id, project_id) = asker.place;
    let new = NewIntent {
        id: Uuid::now_v7(),
        org_id,
        project_id,
        slot: slot(asked),
        destination,
        expected_digest: asked.expected_digest.as_deref(),
        signing_key_id: asked.signing_key_id,
        created_by: asker.by,
        correlation_id: asker.correlation_id,
        ttl_seconds: asked.ttl_seconds.unwrap_or(HOUR),
    };
    // An upload of the same bytes that broke off goes on under its own intent.
    let intent = match publish_intents::reopen_upload(conn, &new).await? {
        Some(open) => open,
        None => publish_intents::insert(conn, &new).await?,
    };
    let of = Subject { org: Some(org_id), project: Some(project_id), user: None };
    let required = trust_demands::required(conn, of).await?;
    Ok(PublishIntent {
        id: intent.id,
        slot: ArtifactSlot {
            app_slug: asked.app_slug.clone(),
            app_version: asked.app_version.clone(),
            artifact_name: asked.artifact_name.clone(),
            variant: asked.variant.clone(),
            artifact_kind: asked.artifact_kind,
            source_type: asked.artifact_kind.source_type(),
        },
        registry: None,
        repository: intent.repository,
        tag: intent.tag,
        credential: None,
        upload_path: None,
        upload_method: None,
        upload_headers: None,
        source_uri: intent.source_uri,
        max_bytes: intent.max_bytes,
        signature_required: required.signature,
        signature_scheme: SIGNATURE_SCHEME.to_owned(),
        signing_key_id: intent.signing_key_id,
        provenance_required: required.provenance,
        expected_digest: intent.expected_digest,
        expires_at: intent.expires_at,
        secret_already_delivered: false,
    })
}

fn slot(asked: &NewPublishIntent) -> Slot<'_> {
    Slot {
        app_slug: &asked.app_slug,
        app_version: &asked.app_version,
        artifact_name: &asked.artifact_name,
        variant: asked.variant.as_deref(),
        kind: asked.artifact_kind,
    }
}

/// A hint for people. Versions may hold a `+`, which tags may not.
fn tag(asked: &NewPublishIntent) -> String {
    match asked.channel {
        Some(channel) => format!("{channel}-latest"),
        None => asked.app_version.replace('+', "_"),
    }
}
