//! `POST P/app-artifacts/{id}/revoke`: nothing new uses these bytes from this commit on, under whichever version they are
//! registered, and they are never registered again. A launch of them that a node has not answered for is ended in the same
//! commit, and its run turns back. What runs goes on, and is listed.

use api_types::{ArtifactReference, ArtifactRevoked, Operate};
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::Response;
use domain::artifact::{Trust, TrustMove};
use domain::event::EventType;
use domain::{ErrorCode, StatusReason};
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact, Reference};
use store::audit::{self, NewEntry};
use store::{node_tasks, registry_credentials};
use uuid::Uuid;

use super::{place, shown, tell};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{self, IfMatch};
use crate::launches;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;
use crate::state::State;

pub(crate) fn revoke() -> Endpoint {
    Endpoint::new("revoke_artifact", "Take back all trust in an artifact's bytes, for good", take_back)
        .header("If-Match", "Only if the artifact still has this tag.")
        .body::<Operate>()
        .answers::<ArtifactRevoked>(
            200,
            "The artifact, and the instances that still use its bytes. Every other registration of them is revoked too, \
             and so is all that an index names.",
        )
        .tagged()
        .refuses(&[ErrorCode::ArtifactNotFound, ErrorCode::PreconditionFailed])
}

async fn take_back(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let missing = || ApiError::plain(ErrorCode::ArtifactNotFound);
    let project = place(&change.caller)?.1;
    let id = id.or(ErrorCode::ArtifactNotFound)?;
    let asked = app_artifacts::find(&mut change.tx, id).await?;
    let asked = asked.filter(|artifact| artifact.project_id == project).ok_or_else(missing)?;
    app_artifacts::hold(&mut change.tx, &asked.home()).await?;
    let all = app_artifacts::of_same_bytes(&mut change.tx, &asked).await?;
    let before = all.iter().find(|one| one.id == id).cloned().ok_or_else(missing)?;
    if_match.require(&shown(before.clone())?)?;
    let reason = change.body.reason.take();
    app_artifacts::revoke_bytes(&mut change.tx, id).await?;
    for artifact in &all {
        let after = revoked(&mut change.tx, &change.caller, artifact).await?;
        if let Some(after) = after.filter(|after| after.id != id) {
            note(&mut change.tx, &change.caller, artifact, &after, reason.as_deref()).await?;
        }
    }
    let ids: Vec<Uuid> = all.iter().map(|artifact| artifact.id).collect();
    registry_credentials::revoke_pulls_of(&mut change.tx, &ids).await?;
    // A node that has the image needs no credential to run it, so its task must go.
    let launches = node_tasks::launches_of(&mut change.tx, &ids).await?;
    let why = (StatusReason::ArtifactRevoked, "the artifact was revoked before the node had launched it");
    launches::stop(&state, &mut change.tx, &launches, why).await?;
    let affected = app_artifacts::affected(&mut change.tx, &ids).await?;
    let after = shown(app_artifacts::find(&mut change.tx, id).await?.ok_or_else(missing)?)?;
    let told = Change::of("artifact", id).from(&shown(before)?).to(&after).because(reason);
    let tag = etag::of(&after)?;
    let body = ArtifactRevoked {
        artifact: after,
        affected_total: affected.total,
        affected_instances: affected.listed.into_iter().map(shown_use).collect(),
    };
    let answer = change.commit(told, Answer::ok(&body)?.with(header::ETAG, tag)).await?;
    state.engine.wake();
    Ok(answer)
}

fn shown_use(used: Reference) -> ArtifactReference {
    ArtifactReference {
        app_instance_id: used.app_instance_id,
        project_id: used.project_id,
        standing: used.standing,
        status: used.status,
    }
}

/// As it is afterwards; none where it was revoked already.
async fn revoked(
    conn: &mut PgConnection,
    caller: &Caller,
    artifact: &AppArtifact,
) -> Result<Option<AppArtifact>, ApiError> {
    let from = artifact.trust()?;
    if from == Trust::Revoked {
        return Ok(None);
    }
    app_artifacts::move_trust(conn, artifact.id, from, TrustMove::Revoke, None).await?;
    let after = app_artifacts::find(conn, artifact.id).await?;
    let after = after.ok_or_else(|| ApiError::plain(ErrorCode::ArtifactNotFound))?;
    tell(conn, caller, EventType::ArtifactRevoked, &after).await?;
    Ok(Some(after))
}

/// What the request's own entry does not say: that another registration went with the one it names.
async fn note(
    conn: &mut PgConnection,
    caller: &Caller,
    before: &AppArtifact,
    after: &AppArtifact,
    reason: Option<&str>,
) -> Result<(), ApiError> {
    let entry = NewEntry {
        target: format!("artifact:{}", after.id),
        before: Some(before.told()),
        after: Some(after.told()),
        reason: reason.map(str::to_owned),
        ..caller.entry()
    };
    audit::insert(conn, &entry).await?;
    Ok(())
}
