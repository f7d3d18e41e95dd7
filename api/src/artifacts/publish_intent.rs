//! `POST P/app-artifacts/publish-intents`: the permission to publish one artifact of a version. The platform decides where
//! it goes; the credential reaches that repository, and nothing else, until the intent expires.

use api_types::{Invalid, NewPublishIntent, PublishIntent};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use domain::manifest::ArtifactKind;
use domain::{ErrorCode, PolicyKey, artifact};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::publish_intents::{self, NewIntent};
use store::{app_owners, projects, signing_keys};
use uuid::Uuid;

use super::{credential, place, require_owner};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

const HOUR: i32 = 3600;
pub(super) const SIGNATURE_SCHEME: &str = "cosign-ecdsa-p256";

pub(crate) fn publish_intent() -> Endpoint {
    Endpoint::new("create_publish_intent", "Ask for the permission to publish an artifact", make)
        .body::<NewPublishIntent>()
        .answers::<PublishIntent>(201, "Where to publish, and a credential that is told this once.")
        .refuses(&[ErrorCode::OwnershipRequired])
}

async fn make(
    Shared(state): Shared<State>,
    mut change: Mutation<NewPublishIntent>,
) -> Result<Response, ApiError> {
    let depot = state.depot()?;
    let (org, project) = place(&change.caller)?;
    check(&change.body)?;
    require_owner(app_owners::of_locked(&mut change.tx, &change.body.app_slug).await?, project)?;
    check_key(&mut change.tx, project, change.body.signing_key_id).await?;
    let id = Uuid::now_v7();
    let slug = projects::slug_of(&mut change.tx, project).await?;
    let repository = artifact::repository(&slug, &change.body.app_slug);
    let tag = tag(&change.body);
    let ttl_seconds = change.body.ttl_seconds.unwrap_or(HOUR);
    let correlation_id = change.caller.context.correlation_id.to_string();
    let asked = &change.body;
    let new = NewIntent {
        id,
        org_id: org,
        project_id: project,
        app_slug: &asked.app_slug,
        app_version: &asked.app_version,
        artifact_name: &asked.artifact_name,
        variant: asked.variant.as_deref(),
        artifact_kind: asked.artifact_kind.as_str(),
        repository: Some(&repository),
        tag: Some(&tag),
        source_uri: None,
        max_bytes: None,
        expected_digest: asked.expected_digest.as_deref(),
        signing_key_id: asked.signing_key_id,
        created_by: change.caller.principal().id,
        correlation_id: &correlation_id,
        ttl_seconds,
    };
    let intent = publish_intents::insert(&mut change.tx, &new).await?;
    let reach =
        credential::For { id, place: (org, project), repository: &repository, may_push: true, ttl_seconds };
    let credential = credential::give(depot, &mut change.tx, &reach).await?;
    let subject = Subject { org: Some(org), project: Some(project), user: None };
    let mut required = async |key| -> Result<bool, ApiError> {
        let value = policies::resolve(&mut change.tx, key, subject).await?.value;
        Ok(value.as_bool().unwrap_or_default())
    };
    let signature_required = required(PolicyKey::SignatureRequired).await?;
    let provenance_required = required(PolicyKey::ProvenanceRequired).await?;
    let body = PublishIntent {
        id,
        app_slug: intent.app_slug,
        app_version: intent.app_version,
        artifact_name: intent.artifact_name,
        variant: intent.variant,
        artifact_kind: change.body.artifact_kind,
        source_type: change.body.artifact_kind.source_type(),
        registry: Some(depot.registry.host.clone()),
        repository: intent.repository,
        tag: intent.tag,
        credential: Some(credential),
        upload_path: None,
        upload_method: None,
        upload_headers: None,
        source_uri: None,
        max_bytes: None,
        signature_required,
        signature_scheme: SIGNATURE_SCHEME.to_owned(),
        signing_key_id: intent.signing_key_id,
        provenance_required,
        expected_digest: intent.expected_digest,
        expires_at: intent.expires_at,
        secret_already_delivered: false,
    };
    let mut told = body.clone();
    told.credential = None;
    let told = Change::of("publish_intent", id).to(&told);
    change.commit(told, Answer::json(StatusCode::CREATED, &body)?.once(&["credential.token"])).await
}

/// What the schema cannot say: fields that do not go together.
fn check(asked: &NewPublishIntent) -> Result<(), ApiError> {
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
    if asked.max_bytes.is_some() {
        problem("/max_bytes", "is for blobs only");
    }
    if problems.is_empty() { Ok(()) } else { Err(ApiError::listing(ErrorCode::ValidationError, problems)) }
}

async fn check_key(conn: &mut PgConnection, project: Uuid, id: Option<Uuid>) -> Result<(), ApiError> {
    let Some(id) = id else { return Ok(()) };
    let key = signing_keys::find_locked(conn, project, id).await?;
    match key.filter(|key| key.retired_at.is_none()) {
        Some(_) => Ok(()),
        None => Err(ApiError::invalid("/signing_key_id", "is not a live signing key of this project")),
    }
}

/// A hint for people. Versions may hold a `+`, which tags may not.
fn tag(asked: &NewPublishIntent) -> String {
    match asked.channel {
        Some(channel) => format!("{channel}-latest"),
        None => asked.app_version.replace('+', "_"),
    }
}
