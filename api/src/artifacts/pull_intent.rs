//! `POST P/app-artifacts/pull-intents`: the permission to pull one image by its digest, for whoever asks. Refused for what
//! must not be used anew: a revoked or retired artifact gets none.

use api_types::{NewPullIntent, PullIntent};
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ErrorCode;
use domain::artifact::{Lifecycle, Trust};
use store::app_artifacts::{self, AppArtifact};
use store::pull_intents::{self, NewPull};
use uuid::Uuid;

use super::{credential, place};
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
    let depot = state.depot()?;
    let (org, project) = place(&change.caller)?;
    let missing = || ApiError::plain(ErrorCode::ArtifactNotFound);
    let artifact = app_artifacts::find_locked(&mut change.tx, change.body.artifact_id).await?;
    let artifact = artifact.filter(|artifact| artifact.project_id == project).ok_or_else(missing)?;
    let repository = usable(&artifact)?;
    let (id, ttl_seconds) = (Uuid::now_v7(), change.body.ttl_seconds.unwrap_or(QUARTER));
    let correlation_id = change.caller.context.correlation_id.to_string();
    let new = NewPull {
        id,
        org_id: org,
        project_id: project,
        artifact_id: artifact.id,
        repository,
        digest: &artifact.digest,
        node_id: None,
        created_by: change.caller.principal().id,
        correlation_id: &correlation_id,
        ttl_seconds,
    };
    let expires_at = pull_intents::insert(&mut change.tx, &new).await?;
    let reach = credential::For { id, place: (org, project), repository, may_push: false, ttl_seconds };
    let credential = credential::give(depot, &mut change.tx, &reach).await?;
    let body = PullIntent {
        id,
        artifact_id: artifact.id,
        registry: depot.registry.host.clone(),
        repository: repository.to_owned(),
        digest: artifact.digest.clone(),
        credential,
        expires_at,
        secret_already_delivered: false,
    };
    let told = Change::of("pull_intent", id).to(&serde_json::json!({
        "artifact_id": artifact.id, "repository": repository, "digest": artifact.digest, "expires_at": expires_at,
    }));
    change.commit(told, Answer::json(StatusCode::CREATED, &body)?.once(&["credential.token"])).await
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
