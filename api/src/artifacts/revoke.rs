//! `POST P/app-artifacts/{id}/revoke`: nothing new uses the artifact from this commit on. What runs goes on, and is listed.

use api_types::{ArtifactReference, ArtifactRevoked, Operate};
use axum::response::Response;
use domain::ErrorCode;
use domain::artifact::{Trust, TrustMove};
use domain::event::EventType;
use store::{app_artifacts, registry_credentials};

use super::{place, shown, tell};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn revoke() -> Endpoint {
    Endpoint::new("revoke_artifact", "Take back all trust in an artifact, for good", take_back)
        .body::<Operate>()
        .answers::<ArtifactRevoked>(200, "The artifact, and the instances that still use it.")
        .refuses(&[ErrorCode::ArtifactNotFound])
}

async fn take_back(id: Id, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let missing = || ApiError::plain(ErrorCode::ArtifactNotFound);
    let project = place(&change.caller)?.1;
    let id = id.or(ErrorCode::ArtifactNotFound)?;
    let before = app_artifacts::find_locked(&mut change.tx, id).await?;
    let before = before.filter(|artifact| artifact.project_id == project).ok_or_else(missing)?;
    let from = before.trust()?;
    let affected = app_artifacts::references(&mut change.tx, &before).await?;
    if from != Trust::Revoked {
        app_artifacts::move_trust(&mut change.tx, id, from, TrustMove::Revoke, None).await?;
        registry_credentials::revoke_pulls_of(&mut change.tx, id).await?;
    }
    let after = app_artifacts::find(&mut change.tx, id).await?.ok_or_else(missing)?;
    if from != Trust::Revoked {
        tell(&mut change.tx, &change.caller, EventType::ArtifactRevoked, &after).await?;
    }
    let after = shown(after)?;
    let reason = change.body.reason.take();
    let told = Change::of("artifact", id).from(&shown(before)?).to(&after).because(reason);
    let affected_instances = affected.into_iter().map(|used| ArtifactReference {
        app_instance_id: used.app_instance_id,
        project_id: used.project_id,
        standing: used.standing,
        status: used.status,
    });
    let body = ArtifactRevoked { artifact: after, affected_instances: affected_instances.collect() };
    change.commit(told, Answer::ok(&body)?).await
}
