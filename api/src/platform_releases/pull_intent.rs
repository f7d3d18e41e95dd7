//! `POST platform/releases/{version}/artifacts/{name}/pull-intents`: the permission to pull an image of a release, for
//! whoever is signed in.

use api_types::{NewPlatformPullIntent, PullIntent};
use axum::extract::{Path, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use domain::ErrorCode;
use store::app_artifacts;

use super::{named, require_trusted};
use crate::artifacts::{Pull, issue_pull};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

pub(crate) fn pull_intent() -> Endpoint {
    Endpoint::new("create_platform_pull_intent", "Ask for the permission to pull a release's image", make)
        .body::<NewPlatformPullIntent>()
        .answers::<PullIntent>(201, "Where to pull from, and a credential that is told this once.")
        .refuses(&[
            ErrorCode::ReleaseNotFound,
            ErrorCode::ArtifactNotFound,
            ErrorCode::ArtifactUntrusted,
            ErrorCode::ArtifactNotDeployable,
        ])
}

async fn make(
    Shared(state): Shared<State>,
    Path((version, name)): Path<(String, String)>,
    mut change: Mutation<NewPlatformPullIntent>,
) -> Result<Response, ApiError> {
    let artifact = named(&mut change.tx, &version, &name).await?;
    let artifact = app_artifacts::find_locked(&mut change.tx, artifact.artifact_id).await?;
    let artifact = artifact.ok_or_else(|| ApiError::plain(ErrorCode::ArtifactNotFound))?;
    require_trusted(&artifact)?;
    let caller = change.caller.clone();
    let wanted = Pull { artifact: &artifact, ttl_seconds: change.body.ttl_seconds, of_release: true };
    let body = issue_pull(state.depot()?, &mut change.tx, &caller, &wanted).await?;
    let told = Change::of("pull_intent", body.id).to(&serde_json::json!({
        "release": version, "artifact_id": artifact.id, "digest": artifact.digest, "expires_at": body.expires_at,
    }));
    change.commit(told, Answer::json(StatusCode::CREATED, &body)?.once(&["credential.token"])).await
}
