//! `GET A/apps/submissions`, `P/apps/submissions` and `A/apps/submissions/{id}`.

use api_types::{Page, Submission, SubmissionDetail};
use axum::extract::State as Shared;
use domain::ErrorCode;
use domain::json_diff::differences;
use domain::manifest::number;
use serde_json::Value;
use sqlx::PgConnection;
use store::{app_versions, apps, submissions as table};

use super::shown;
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like, word};
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

const STATUS: &str = "^(pending|approved|rejected|superseded)$";

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_submissions", "Manifests that were sent for review", all)
        .query("status", text_like(STATUS), "Only those with this status.")
        .query("app_slug", word(), "Only those of this app.")
        .answers_page::<Submission>("A page of submissions, in the order in which they came.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_submission", "A submission, with what it changes", one)
        .answers::<SubmissionDetail>(
            200,
            "The submission; the `ETag` header is a strong tag of this very body.",
        )
        .tagged()
        .refuses(&[ErrorCode::SubmissionNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Submission>>, ApiError> {
    let paging = Paging::read(&mut params, "s1");
    let filter = table::Filter {
        project_id: caller.scope.project(),
        status: params.text("status"),
        app_slug: params.text("app_slug"),
    };
    let known = ["pending", "approved", "rejected", "superseded"];
    if filter.status.as_deref().is_some_and(|status| !known.contains(&status)) {
        params.problem("status", format!("must be one of {}", known.join(", ")));
    }
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, &filter, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

async fn one(
    Shared(state): Shared<State>,
    _: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<SubmissionDetail>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::SubmissionNotFound;
    let mut tx = state.read().await?;
    let submission = table::find(&mut tx, id.or(missing)?).await?.ok_or_else(|| ApiError::plain(missing))?;
    let detail = detail(&mut tx, submission).await?;
    tx.rollback().await?;
    Ok(Tagged(detail))
}

/// What a reader of the one submission sees, and what its tag is of.
pub(super) async fn detail(
    conn: &mut PgConnection,
    submission: table::Submission,
) -> Result<SubmissionDetail, ApiError> {
    let previous = previous(conn, &submission).await?;
    let before = previous.as_ref().map_or(Value::Null, |version| version.manifest.clone());
    let diff = if previous.is_some() { differences(&before, &submission.manifest) } else { Vec::new() };
    let manifest = submission.manifest.clone();
    Ok(SubmissionDetail {
        submission: shown(submission),
        manifest,
        previous_version: previous.map(|version| version.version),
        diff,
    })
}

/// The draft that would be replaced, or else the next older version.
async fn previous(
    conn: &mut PgConnection,
    submission: &table::Submission,
) -> Result<Option<app_versions::AppVersion>, ApiError> {
    let (slug, version) = (&submission.app_slug, &submission.version);
    let Some(app) = apps::find(conn, slug).await? else { return Ok(None) };
    let same = app_versions::find(conn, slug, version).await?;
    if let Some(draft) = same.filter(|same| same.content_digest != submission.content_digest) {
        return Ok(Some(draft));
    }
    let older = app_versions::numbers(conn, app.id).await?;
    let older = older.iter().filter(|other| number::compare(other, version).is_lt());
    match older.max_by(|one, other| number::compare(one, other)) {
        Some(older) => Ok(app_versions::find(conn, slug, older).await?),
        None => Ok(None),
    }
}
