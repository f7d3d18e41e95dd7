//! `POST A/apps/submissions/{id}/approve|reject`: one decision, and it is the last. Approval puts the version into the
//! catalog in the same transaction.

use api_types::{ApproveSubmission, RejectSubmission, Submission};
use axum::http::header;
use axum::response::Response;
use domain::ErrorCode;
use domain::manifest::Manifest;
use serde_json::json;
use store::submissions as table;

use super::read::detail;
use super::shown;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{self, IfMatch};
use crate::manifests;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn approve() -> Endpoint {
    Endpoint::new("approve_submission", "Put the submitted version into the catalog as a draft", accept)
        .header("If-Match", "Only if the submission still has this tag.")
        .body::<ApproveSubmission>()
        .answers::<Submission>(200, "The submission, approved.")
        .tagged()
        .refuses(&[
            ErrorCode::SubmissionNotFound,
            ErrorCode::PreconditionFailed,
            ErrorCode::StateConflict,
            ErrorCode::OwnershipRequired,
        ])
}

pub(crate) fn reject() -> Endpoint {
    Endpoint::new("reject_submission", "Send the submission back with a reason", refuse)
        .header("If-Match", "Only if the submission still has this tag.")
        .body::<RejectSubmission>()
        .answers::<Submission>(200, "The submission, rejected.")
        .tagged()
        .refuses(&[ErrorCode::SubmissionNotFound, ErrorCode::PreconditionFailed, ErrorCode::StateConflict])
}

async fn accept(
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<ApproveSubmission>,
) -> Result<Response, ApiError> {
    let submission = undecided(&mut change, id, &if_match).await?;
    let manifest: Manifest =
        serde_json::from_value(submission.manifest.clone()).map_err(|error| ApiError::internal(&error))?;
    let owner = (submission.org_id, submission.project_id);
    manifests::registered(&mut change.tx, &change.caller, &manifest, owner).await?;
    let reason = change.body.reason.take();
    decide(change, submission, "approved", reason).await
}

async fn refuse(
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<RejectSubmission>,
) -> Result<Response, ApiError> {
    let submission = undecided(&mut change, id, &if_match).await?;
    let reason = Some(change.body.reason.clone());
    decide(change, submission, "rejected", reason).await
}

/// Held still until the transaction ends, so that the second of two decisions finds the first.
async fn undecided<T>(
    change: &mut Mutation<T>,
    id: Id,
    if_match: &IfMatch,
) -> Result<table::Submission, ApiError> {
    let missing = ErrorCode::SubmissionNotFound;
    let submission = table::find_locked(&mut change.tx, id.or(missing)?).await?;
    let submission = submission.ok_or_else(|| ApiError::plain(missing))?;
    if *if_match != IfMatch::Absent {
        if_match.require(&detail(&mut change.tx, submission.clone()).await?)?;
    }
    if submission.status == "pending" {
        return Ok(submission);
    }
    let message = format!("The submission is {} already.", submission.status);
    Err(ApiError::new(ErrorCode::StateConflict, message)
        .with("state", submission.status)
        .with("allowed_actions", json!([])))
}

async fn decide<T>(
    mut change: Mutation<T>,
    before: table::Submission,
    status: &str,
    reason: Option<String>,
) -> Result<Response, ApiError> {
    let by = change.caller.principal().id;
    let after = table::decide(&mut change.tx, before.id, status, by, reason.as_deref()).await?;
    // The tag is that of the whole submission, as it is read one by one.
    let tag = etag::of(&detail(&mut change.tx, after.clone()).await?)?;
    let (before, after) = (shown(before), shown(after));
    let told = Change::of("submission", after.id)
        .owned_by(after.org_id, after.project_id)
        .from(&before)
        .to(&after)
        .because(reason);
    change.commit(told, Answer::ok(&after)?.with(header::ETAG, tag)).await
}
