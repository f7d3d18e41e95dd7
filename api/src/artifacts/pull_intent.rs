//! `POST P/app-artifacts/pull-intents`: the permission to pull one image by its digest, for whoever asks. Refused for what
//! must not be used anew: a revoked or retired artifact gets none, nor does one of a retired version.

use api_types::{NewPullIntent, PullIntent};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use domain::artifact::{Lifecycle, Trust};
use domain::{ErrorCode, VersionStatus};
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};
use store::app_versions;
use store::pull_intents::{self, NewPull};
use uuid::Uuid;

use super::{credential, place};
use crate::caller::Caller;
use crate::depot::Depot;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

const QUARTER: i32 = 900;

pub(crate) fn pull_intent() -> Endpoint {
    Endpoint::new("create_pull_intent", "Ask for the permission to pull an artifact", make)
        .body::<NewPullIntent>()
        .answers::<PullIntent>(201, "Where to pull from, and a credential that is told this once.")
        .refuses(&[
            ErrorCode::ArtifactNotFound,
            ErrorCode::ArtifactUntrusted,
            ErrorCode::ArtifactNotDeployable,
        ])
}

async fn make(
    Shared(state): Shared<State>,
    mut change: Mutation<NewPullIntent>,
) -> Result<Response, ApiError> {
    let project = place(&change.caller)?.1;
    let missing = || ApiError::plain(ErrorCode::ArtifactNotFound);
    let artifact = app_artifacts::find_locked(&mut change.tx, change.body.artifact_id).await?;
    let artifact = artifact.filter(|artifact| artifact.project_id == project).ok_or_else(missing)?;
    let (caller, ttl_seconds) = (change.caller.clone(), change.body.ttl_seconds);
    let wanted = Pull { artifact: &artifact, ttl_seconds, of_release: false };
    let body = issue(state.depot()?, &mut change.tx, &caller, &wanted).await?;
    let told = Change::of("pull_intent", body.id).to(&serde_json::json!({
        "artifact_id": artifact.id, "repository": artifact.repository, "digest": artifact.digest,
        "expires_at": body.expires_at,
    }));
    change.commit(told, Answer::json(StatusCode::CREATED, &body)?.once(&["credential.token"])).await
}

/// What is to be pulled, and for how long.
pub(crate) struct Pull<'a> {
    pub(crate) artifact: &'a AppArtifact,
    pub(crate) ttl_seconds: Option<i32>,
    /// Everybody who is signed in may have it.
    pub(crate) of_release: bool,
}

/// For an artifact that is held still and may still be used.
pub(crate) async fn issue(
    depot: &Depot,
    conn: &mut PgConnection,
    caller: &Caller,
    &Pull { artifact, ttl_seconds, of_release }: &Pull<'_>,
) -> Result<PullIntent, ApiError> {
    let repository = usable(artifact)?;
    still_in_use(conn, artifact).await?;
    let (id, ttl_seconds) = (Uuid::now_v7(), ttl_seconds.unwrap_or(QUARTER));
    let (org_id, project_id) = artifact.owner();
    let new = NewPull {
        id,
        org_id,
        project_id,
        artifact_id: artifact.id,
        repository,
        digest: &artifact.digest,
        node_id: None,
        of_release,
        created_by: caller.principal().id,
        correlation_id: caller.context.correlation_id.as_str(),
        ttl_seconds,
    };
    let expires_at = pull_intents::insert(conn, &new).await?;
    let reach = credential::For { id, place: (org_id, project_id), repository, may_push: false, ttl_seconds };
    let credential = credential::give(depot, conn, &reach).await?;
    Ok(PullIntent {
        id,
        artifact_id: artifact.id,
        registry: depot.registry.host.clone(),
        repository: repository.to_owned(),
        digest: artifact.digest.clone(),
        credential,
        expires_at,
        secret_already_delivered: false,
    })
}

/// The repository of an image that may still be used.
fn usable(artifact: &AppArtifact) -> Result<&str, ApiError> {
    let refuse = |code, state: &str| Err(ApiError::plain(code).with("state", state));
    if artifact.trust()? == Trust::Revoked {
        return refuse(ErrorCode::ArtifactUntrusted, &artifact.trust_state);
    }
    if artifact.lifecycle()? == Lifecycle::Retired {
        return refuse(ErrorCode::ArtifactNotDeployable, &artifact.lifecycle_state);
    }
    artifact.repository.as_deref().ok_or_else(|| ApiError::invalid("/artifact_id", "is no image"))
}

/// What was published for a version that is out of use for good is of no use either.
async fn still_in_use(conn: &mut PgConnection, artifact: &AppArtifact) -> Result<(), ApiError> {
    let version = app_versions::find(conn, &artifact.app_slug, &artifact.app_version).await?;
    match version.filter(|version| version.status == VersionStatus::Retired) {
        None => Ok(()),
        Some(version) => {
            let message = format!("{} {} is {}.", version.slug, version.version, version.status);
            Err(ApiError::new(ErrorCode::ArtifactNotDeployable, message)
                .with("state", version.status.as_str()))
        }
    }
}
