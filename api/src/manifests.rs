//! How manifests come in: `POST P/apps/manifests` sends one for review, `POST A/apps/manifests` registers it at once.

use api_types::{AppVersion, Submission};
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::Response;
use domain::manifest::Manifest;
use domain::{ErrorCode, VersionStatus};
use serde_json::json;
use sqlx::PgConnection;
use store::registration::{Registered, Registration, register as enter, written};
use store::submissions::{self, NewSubmission};
use store::{app_versions, apps, projects};
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;
use workflows::action::allowed_actions;

use crate::body::ReadBody;
use crate::caller::Caller;
use crate::catalog;
use crate::endpoint::{Endpoint, text_as};
use crate::error::ApiError;
use crate::manifest_body;
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::submissions::shown;

pub(crate) fn submit() -> Endpoint {
    Endpoint::new(
        "submit_manifest",
        "Send a manifest for review; the same content twice is one submission",
        send,
    )
    .manifest()
    .answers::<Submission>(201, "The submission, to be decided by the platform's people.")
    .answers::<Submission>(200, "This very content was sent before and is not rejected.")
    .refuses(&[ErrorCode::OwnershipRequired, ErrorCode::StateConflict])
}

pub(crate) fn register() -> Endpoint {
    let about = "The project that owns the app; it submits versions and registers artifacts from then on.";
    Endpoint::new("register_manifest", "Put a version into the catalog as a draft, without review", put)
        .needed_query("owner_project_id", text_as(KnownFormat::Uuid), about)
        .manifest()
        .answers::<AppVersion>(201, "The draft; `Location` is where it is read.")
        .answers::<AppVersion>(200, "The version has this very content already.")
        .refuses(&[ErrorCode::OwnershipRequired, ErrorCode::StateConflict])
}

/// A manifest in its normal form, as a request brings it.
struct ManifestBody(Manifest);

impl ReadBody for ManifestBody {
    async fn read(request: Request) -> Result<(Bytes, ManifestBody), ApiError> {
        let (bytes, accepted) = manifest_body::read(request).await?;
        Ok((bytes, ManifestBody(accepted.manifest)))
    }
}

async fn send(params: Params, mut change: Mutation<ManifestBody>) -> Result<Response, ApiError> {
    params.finish()?;
    let (Some(org_id), Some(project_id)) = (change.caller.scope.org(), change.caller.scope.project()) else {
        return Err(ApiError::internal(&"a route of projects outside of one"));
    };
    let manifest = &change.body.0;
    may_submit(&mut change.tx, project_id, manifest).await?;
    let (form, digest) = (written(manifest)?, manifest.digest());
    let new = NewSubmission {
        org_id,
        project_id,
        app_slug: &manifest.app.slug,
        version: &manifest.version.version,
        manifest: &form,
        content_digest: &digest,
        submitted_by: change.caller.principal().id,
    };
    submissions::lock_pending(&mut change.tx, project_id, new.app_slug, new.version).await?;
    let (status, submission) = match submissions::find_same(&mut change.tx, &new).await? {
        Some(same) => (StatusCode::OK, same),
        None => (StatusCode::CREATED, submissions::insert(&mut change.tx, &new).await?),
    };
    let submission = shown(submission);
    let told = Change::of("submission", submission.id).to(&submission);
    change.commit(told, Answer::json(status, &submission)?).await
}

/// What approval would refuse is refused at once: a slug of somebody else, other content for what left draft.
async fn may_submit(conn: &mut PgConnection, project: Uuid, manifest: &Manifest) -> Result<(), ApiError> {
    let slug = &manifest.app.slug;
    if apps::find(conn, slug).await?.is_some_and(|app| app.owner_project_id != project) {
        return Err(other_owner(slug));
    }
    let version = app_versions::find(conn, slug, &manifest.version.version).await?;
    match version {
        Some(version)
            if version.status != VersionStatus::Draft && version.content_digest != manifest.digest() =>
        {
            Err(frozen(&version))
        }
        _ => Ok(()),
    }
}

async fn put(mut params: Params, mut change: Mutation<ManifestBody>) -> Result<Response, ApiError> {
    let owner = owner(&mut change.tx, &mut params).await;
    params.finish()?;
    let owner = owner?.ok_or_else(|| ApiError::internal(&"an owner that is nobody's problem"))?;
    let registered = registered(&mut change.tx, &change.caller, &change.body.0, owner).await?;
    let (status, version) = match registered {
        (version, true) => (StatusCode::CREATED, version),
        (version, false) => (StatusCode::OK, version),
    };
    let location = format!("/api/v1/apps/catalog/{}/versions/{}", version.slug, version.version);
    let version = catalog::shown(&version, &change.caller);
    let told = Change::of("version", version.id).owned_by(owner.0, owner.1).to(&version);
    change.commit(told, Answer::json(status, &version)?.with(header::LOCATION, location).tagged()).await
}

async fn owner(conn: &mut PgConnection, params: &mut Params) -> Result<Option<(Uuid, Uuid)>, ApiError> {
    let Some(project) = params.parsed::<Uuid>("owner_project_id", "a project's id") else {
        params.problem("owner_project_id", "must name the project that owns the app");
        return Ok(None);
    };
    let org = projects::org_of(conn, project).await?;
    if org.is_none() {
        params.problem("owner_project_id", "is not a project");
    }
    Ok(org.map(|org| (org, project)))
}

/// The version as the catalog has it now, and whether it came or changed.
pub(crate) async fn registered(
    conn: &mut PgConnection,
    caller: &Caller,
    manifest: &Manifest,
    owner: (Uuid, Uuid),
) -> Result<(app_versions::AppVersion, bool), ApiError> {
    let thread = caller.context.thread();
    let new = Registration { manifest, owner, by: caller.principal().id, thread };
    match enter(conn, &new).await? {
        Registered::Draft(version) => Ok((version, true)),
        Registered::Same(version) => Ok((version, false)),
        Registered::Frozen(version) => Err(frozen(&version)),
        Registered::OtherOwner => Err(other_owner(&manifest.app.slug)),
    }
}

fn frozen(version: &app_versions::AppVersion) -> ApiError {
    let message = format!(
        "{} {} is {} and keeps its content; register other content under another version.",
        version.slug, version.version, version.status
    );
    ApiError::new(ErrorCode::StateConflict, message)
        .with("state", version.status.as_str())
        .with("content_digest", version.content_digest.as_str())
        .with("allowed_actions", json!(allowed_actions(version)))
}

fn other_owner(slug: &str) -> ApiError {
    let message = format!("The app {slug} belongs to another project.");
    ApiError::new(ErrorCode::OwnershipRequired, message)
}
