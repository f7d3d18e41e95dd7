//! `A/policies`: every key with its bounds and what is set for it, and setting one.

use api_types::{Page, Policy, PolicyValue, SetPolicy};
use axum::extract::{Path, State as Shared};
use axum::response::Response;
use domain::{ErrorCode, PolicyKey, PolicyLayer};
use sqlx::PgConnection;
use store::{organizations, policies, projects, users};
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::state::State;

/// How many values of one key a list shows.
const MOST_VALUES: i64 = 100;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_policies", "Every policy key, its bounds, and what is set for it", all)
        .query(
            "scope_id",
            text_as(KnownFormat::Uuid),
            "Only what is set for this organization, project or user.",
        )
        .answers_page::<Policy>("All keys on one page.")
}

pub(crate) fn put() -> Endpoint {
    Endpoint::new("set_policy", "Set a policy; `scope` is `global`, `org`, `project` or `user`", set)
        .header("If-Match", "Only if the value still has this tag.")
        .body::<SetPolicy>()
        .answers::<PolicyValue>(200, "The value as it is now; `ETag` tags it.")
        .tagged()
        .refuses(&[ErrorCode::PolicyNotFound, ErrorCode::PreconditionFailed])
}

/// Keys are as many as the code declares, so one page holds them all; the shape is that of every list.
async fn all(
    Shared(state): Shared<State>,
    _: Caller,
    mut params: Params,
) -> Result<Json<Page<Policy>>, ApiError> {
    params.only_page();
    let scope_id = params.parsed("scope_id", "a UUID");
    params.finish()?;
    let mut tx = state.read().await?;
    let mut items = Vec::new();
    for key in PolicyKey::all() {
        let mut set = policies::of_key(&mut tx, key, scope_id, MOST_VALUES + 1).await?;
        let more = set.len() as i64 > MOST_VALUES;
        set.truncate(MOST_VALUES as usize);
        let set = set.into_iter().filter_map(shown).collect();
        items.push(Policy { key, default: key.default_value(), bounds: key.bounds(), set, more });
    }
    tx.rollback().await?;
    Ok(Json(Page { items, next_cursor: None }))
}

async fn set(
    Path((layer, scope_id, key)): Path<(String, String, String)>,
    if_match: IfMatch,
    mut change: Mutation<SetPolicy>,
) -> Result<Response, ApiError> {
    let missing = || ApiError::plain(ErrorCode::PolicyNotFound);
    let layer: PolicyLayer = layer.parse().map_err(|_| missing())?;
    let key: PolicyKey = key.parse().map_err(|_| missing())?;
    let scope_id = subject(&mut change.tx, layer, &scope_id).await?.ok_or_else(missing)?;
    // Trying to leave the bounds is worth knowing of, whoever tried.
    key.check(&change.body.value).map_err(|why| ApiError::invalid("/value", why).told_as_denial())?;
    let before = policies::find_locked(&mut change.tx, layer, scope_id, key).await?.and_then(shown);
    if let Some(before) = &before {
        if_match.require(before)?;
    } else if if_match != IfMatch::Absent {
        return Err(ApiError::plain(ErrorCode::PreconditionFailed));
    }
    let by = change.caller.principal().id;
    let after = policies::set(&mut change.tx, layer, scope_id, key, &change.body.value, by).await?;
    let after = shown(after).ok_or_else(missing)?;
    let reason = change.body.reason.take();
    let target = format!("{}/{scope_id}/{key}", layer.as_str());
    let (org, project) = owner(&mut change.tx, layer, scope_id).await?;
    let mut told = Change::of("policy", target).owned_by(org, project).to(&after).because(reason);
    if let Some(before) = &before {
        told = told.from(before);
    }
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

/// Whom a value is for, if there is such a one. The global layer has one subject, by whatever name.
async fn subject(conn: &mut PgConnection, layer: PolicyLayer, text: &str) -> Result<Option<Uuid>, ApiError> {
    if layer == PolicyLayer::Global {
        let named = text == "global" || text.parse() == Ok(Uuid::nil());
        return Ok(named.then_some(Uuid::nil()));
    }
    let Ok(id) = text.parse::<Uuid>() else { return Ok(None) };
    let exists = match layer {
        PolicyLayer::Global => true,
        PolicyLayer::Org => organizations::exists(conn, id).await?,
        PolicyLayer::Project => projects::org_of(conn, id).await?.is_some(),
        PolicyLayer::User => users::find(conn, id).await?.is_some(),
    };
    Ok(exists.then_some(id))
}

/// The organization and the project that a value is for.
async fn owner(
    conn: &mut PgConnection,
    layer: PolicyLayer,
    id: Uuid,
) -> sqlx::Result<(Option<Uuid>, Option<Uuid>)> {
    Ok(match layer {
        PolicyLayer::Global | PolicyLayer::User => (None, None),
        PolicyLayer::Org => (Some(id), None),
        PolicyLayer::Project => (projects::org_of(conn, id).await?, Some(id)),
    })
}

/// A key or layer that only a newer release knows is not shown.
fn shown(row: policies::Policy) -> Option<PolicyValue> {
    Some(PolicyValue {
        key: row.key.parse().ok()?,
        scope: row.layer.parse().ok()?,
        scope_id: row.scope_id,
        value: row.value,
        updated_by: row.updated_by,
        updated_at: row.updated_at,
    })
}
