//! `GET P/app-artifacts` and `/{id}`.

use api_types::{Artifact, Page};
use axum::extract::State as Shared;
use domain::artifact::{Channel, Lifecycle, Trust};
use domain::{Digest, ErrorCode};
use store::app_artifacts::{self, Filter};
use utoipa::PartialSchema;

use super::{place, shown};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like, word};
use crate::error::ApiError;
use crate::etag::Tagged;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_artifacts", "The project's artifacts", all)
        .query("app_slug", word(), "Of this app.")
        .query("app_version", word(), "Of this version.")
        .query("artifact_name", word(), "Of this name.")
        .query("digest", text_like(domain::digest::PATTERN), "With these bytes.")
        .query("lifecycle_state", Lifecycle::schema(), "In this state of its life.")
        .query("trust_state", Trust::schema(), "Trusted this far.")
        .query("channel", Channel::schema(), "Promoted to this channel.")
        .answers_page::<Artifact>("A page of artifacts.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_artifact", "An artifact, and what its last verification found", one)
        .answers::<Artifact>(200, "The artifact; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::ArtifactNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Artifact>>, ApiError> {
    let paging = Paging::read(&mut params, "ar1");
    let filter = Filter {
        app_slug: params.text("app_slug"),
        app_version: params.text("app_version"),
        artifact_name: params.text("artifact_name"),
        digest: params.parsed::<Digest>("digest", "a digest").map(|digest| digest.to_string()),
        lifecycle: params.parsed("lifecycle_state", "a lifecycle state"),
        trust: params.parsed("trust_state", "a trust state"),
        channel: params.parsed::<Channel>("channel", "a channel").map(|channel| channel.to_string()),
    };
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = app_artifacts::list(&mut tx, place(&caller)?.1, &filter, paging.slice()).await?;
    tx.rollback().await?;
    let page = paging.page(rows, |row| row.id, shown);
    let items = page.items.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Json(Page { items, next_cursor: page.next_cursor }))
}

async fn one(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Tagged<Artifact>, ApiError> {
    params.finish()?;
    let missing = ErrorCode::ArtifactNotFound;
    let mut tx = state.read().await?;
    let found = app_artifacts::find(&mut tx, id.or(missing)?).await?;
    tx.rollback().await?;
    let project = place(&caller)?.1;
    let found = found.filter(|row| row.project_id == project).ok_or_else(|| ApiError::plain(missing))?;
    Ok(Tagged(shown(found)?))
}
