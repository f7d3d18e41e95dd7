//! `POST A/platform/releases`: names artifacts that are verified today as a release, for good.

use api_types::{NewPlatformRelease, PlatformRelease};
use axum::response::Response;
use domain::ErrorCode;
use domain::artifact::Trust;
use sqlx::PgConnection;
use store::app_artifacts;
use store::platform_releases::{self as table, NewRelease};
use uuid::Uuid;

use super::{found, shown};
use crate::artifacts::Problems;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_platform_release", "Make a release of the platform", make)
        .body::<NewPlatformRelease>()
        .answers::<PlatformRelease>(201, "The release.")
        .refuses(&[ErrorCode::AlreadyExists, ErrorCode::ArtifactUntrusted])
}

async fn make(mut change: Mutation<NewPlatformRelease>) -> Result<Response, ApiError> {
    let named: Vec<(String, Uuid)> =
        change.body.artifacts.iter().map(|one| (one.name.clone(), one.artifact_id)).collect();
    check(&mut change.tx, &named).await?;
    let new = NewRelease {
        id: Uuid::now_v7(),
        version: &change.body.version,
        release_notes: change.body.release_notes.as_deref(),
        created_by: change.caller.principal().id,
        artifacts: &named,
    };
    if !table::insert(&mut change.tx, &new).await? {
        return Err(ApiError::new(ErrorCode::AlreadyExists, "There is a release of this version already."));
    }
    let (release, artifacts) = found(&mut change.tx, &change.body.version).await?;
    let body = shown(release, &artifacts)?;
    let location = format!("/api/v1/platform/releases/{}", body.version);
    let told = Change::of("platform_release", body.id).to(&body);
    change.commit(told, Answer::created(location, &body)?).await
}

/// Every artifact is there, verified and still in use, and no name is given twice. Held still until the release is made.
async fn check(conn: &mut PgConnection, named: &[(String, Uuid)]) -> Result<(), ApiError> {
    let mut problems = Problems::default();
    for (at, (name, id)) in named.iter().enumerate() {
        if named[..at].iter().any(|(before, _)| before == name) {
            problems.add(&format!("/artifacts/{at}/name"), "is given twice");
        }
        let Some(artifact) = app_artifacts::find_locked(conn, *id).await? else {
            problems.add(&format!("/artifacts/{at}/artifact_id"), "is no artifact");
            continue;
        };
        if artifact.trust()? != Trust::Verified || !artifact.lifecycle()?.is_deployable() {
            let message =
                format!("The artifact {name} is {} and {}.", artifact.trust_state, artifact.lifecycle_state);
            return Err(ApiError::new(ErrorCode::ArtifactUntrusted, message));
        }
    }
    problems.finish()
}
