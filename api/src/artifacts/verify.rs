//! `POST P/app-artifacts/{id}/verify`: looks at the artifact and what lies beside it in the registry, now, by what policy
//! requires now. The verdict and its evidence are kept; that it is bad is an answer, not an error. The registry is read
//! before a transaction is open.

use api_types::{Artifact, NewVerification};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::response::{IntoResponse, Response};
use clients::blobs::BlobName;
use clients::registry::RegistryFault;
use clients::trust::{self, Vouchers};
use domain::ErrorCode;
use domain::artifact::{self, Evidence, Trust, TrustDemands, TrustMove};
use domain::event::EventType;
use store::app_artifacts::{self, AppArtifact};
use store::trust_demands;
use uuid::Uuid;

use super::{offered, place, shown, tell};
use crate::body;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{self, Answer, Change, Mutation};
use crate::path::Id;
use crate::state::State;
use crate::uploads;

pub(crate) fn verify() -> Endpoint {
    Endpoint::new("verify_artifact", "Check signature and provenance as policy requires", check)
        .header("If-Match", "Only if the artifact still has this tag.")
        .body::<NewVerification>()
        .answers::<Artifact>(
            200,
            "The verdict: `trust_state`, and in `evidence` every check. `ETag` tags it.",
        )
        .tagged()
        .refuses(&[
            ErrorCode::ArtifactNotFound,
            ErrorCode::PreconditionFailed,
            ErrorCode::StateConflict,
            ErrorCode::UpstreamError,
        ])
        // A blob is read to its end.
        .takes_its_time()
}

async fn check(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    if_match: IfMatch,
    request: Request,
) -> Result<Response, Response> {
    let request = mutation::unanswered(request, &caller, &state).await?;
    let (asked, request) = body::peek::<NewVerification>(request).await.map_err(ApiError::into_response)?;
    let evidence = look(&state, &caller, id, asked).await.map_err(ApiError::into_response)?;
    let change = Mutation::<NewVerification>::from_request(request, &state).await?;
    keep(change, id, &if_match, &evidence).await.map_err(ApiError::into_response)
}

async fn look(state: &State, caller: &Caller, id: Id, asked: NewVerification) -> Result<Evidence, ApiError> {
    let mut tx = state.read().await?;
    let artifact = app_artifacts::find(&mut tx, id.or(ErrorCode::ArtifactNotFound)?).await?;
    let mut artifact = ours(artifact, place(caller)?.1)?;
    let demands = trust_demands::of(&mut tx, &artifact).await?;
    tx.rollback().await?;
    let Some(name) = &artifact.repository else {
        artifact.signature = asked.signature.or(artifact.signature);
        artifact.provenance = asked.provenance.or(artifact.provenance);
        return look_at_blob(state, &artifact, &demands).await;
    };
    for (pointer, given) in [("/signature", &asked.signature), ("/provenance", &asked.provenance)] {
        if given.is_some() {
            let why = "is for blobs only: an image's lies beside it in the registry";
            return Err(ApiError::invalid(pointer, why));
        }
    }
    let repository = state.depot()?.registry.repository(name);
    trust::examine(&repository, &artifact.digest()?, &demands).await.map_err(|fault| match fault {
        RegistryFault::Unavailable(why) => {
            tracing::warn!(why, "the image registry did not answer");
            ApiError::unavailable("The image registry does not answer right now.")
        }
        fault => ApiError::new(ErrorCode::UpstreamError, fault.to_string()),
    })
}

async fn look_at_blob(
    state: &State,
    artifact: &AppArtifact,
    demands: &TrustDemands,
) -> Result<Evidence, ApiError> {
    let missing = || ApiError::unavailable("No artifact store is configured.");
    let blobs = state.depot()?.blobs.as_ref().ok_or_else(missing)?;
    let key = artifact::key_of(artifact.source_uri.as_deref().unwrap_or_default()).to_owned();
    let name = BlobName { key, intent: artifact.intent_id };
    let vouchers =
        Vouchers { signature: artifact.signature.as_deref(), provenance: artifact.provenance.as_deref() };
    trust::examine_blob(blobs, &name, &artifact.digest()?, vouchers, demands).await.map_err(uploads::refused)
}

fn ours(artifact: Option<AppArtifact>, project: Uuid) -> Result<AppArtifact, ApiError> {
    let found = artifact.filter(|artifact| artifact.project_id == project);
    found.ok_or_else(|| ApiError::plain(ErrorCode::ArtifactNotFound))
}

async fn keep(
    mut change: Mutation<NewVerification>,
    id: Id,
    if_match: &IfMatch,
    evidence: &Evidence,
) -> Result<Response, ApiError> {
    let project = place(&change.caller)?.1;
    let id = id.or(ErrorCode::ArtifactNotFound)?;
    let before = ours(app_artifacts::find_locked(&mut change.tx, id).await?, project)?;
    if_match.require(&shown(before.clone())?)?;
    let (from, act) = (before.trust()?, if evidence.is_good() { TrustMove::Pass } else { TrustMove::Fail });
    if from == Trust::Revoked {
        return Err(ApiError::new(ErrorCode::StateConflict, "The artifact is revoked, for good.")
            .with("state", from.as_str())
            .with("allowed_actions", serde_json::json!(offered(&before, from))));
    }
    let found = serde_json::to_value(evidence).map_err(|error| ApiError::internal(&error))?;
    let (signature, provenance) = (change.body.signature.as_deref(), change.body.provenance.as_deref());
    app_artifacts::vouch(&mut change.tx, id, signature, provenance).await?;
    app_artifacts::move_trust(&mut change.tx, id, from, act, Some(&found)).await?;
    let after = ours(app_artifacts::find(&mut change.tx, id).await?, project)?;
    let kind = match act {
        TrustMove::Pass => EventType::ArtifactVerified,
        _ => EventType::ArtifactVerificationFailed,
    };
    tell(&mut change.tx, &change.caller, kind, &after).await?;
    let after = shown(after)?;
    let reason = change.body.reason.take();
    let told = Change::of("artifact", id).from(&shown(before)?).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}
