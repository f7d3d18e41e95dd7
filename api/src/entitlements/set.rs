//! `PUT P/apps/entitlements/{slug}`: enabling, disabling and narrowing. What goes beyond an outer layer is refused with that
//! layer named. Disabling kills nothing: it blocks every lifecycle action but decommissioning. It is never refused, so an
//! app can be taken back whatever the outer layers have become.

use api_types::{Entitlement, EntitlementSet, Invalid, SetEntitlement};
use axum::extract::Path;
use axum::http::header;
use axum::response::Response;
use domain::entitlement::{Choice, Effective, Layer, Limits, Removal, narrow};
use domain::event::{NewEvent, Thread};
use domain::{ErrorCode, EventType};
use serde_json::json;
use sqlx::PgConnection;
use store::entitlements::{self as table, NewEntitlement};
use store::{apps, effective_policy, outbox};
use uuid::Uuid;

use super::{effective, manifest_of, place, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{self, IfMatch};
use crate::mutation::{Answer, Change, Mutation};

pub(crate) fn set() -> Endpoint {
    Endpoint::new("set_entitlement", "Give the project an app, take it back, or narrow what it may do", put)
        .header("If-Match", "Only if the entitlement still has this tag.")
        .body::<SetEntitlement>()
        .answers::<EntitlementSet>(200, "The entitlement and what it comes to; `ETag` tags it.")
        .refuses(&[ErrorCode::AppNotFound, ErrorCode::PolicyDenied, ErrorCode::PreconditionFailed])
}

async fn put(
    Path((_, slug)): Path<(Uuid, String)>,
    if_match: IfMatch,
    mut change: Mutation<SetEntitlement>,
) -> Result<Response, ApiError> {
    let place = place(&change.caller)?;
    let app =
        apps::find(&mut change.tx, &slug).await?.ok_or_else(|| ApiError::plain(ErrorCode::AppNotFound))?;
    let before = table::find_locked(&mut change.tx, place.1, app.id).await?.map(shown);
    match &before {
        Some(before) => if_match.require(before)?,
        None if if_match != IfMatch::Absent => return Err(ApiError::plain(ErrorCode::PreconditionFailed)),
        None => {}
    }
    if change.body.enabled
        && let Some(manifest) = manifest_of(&mut change.tx, &app).await?
    {
        let outer = effective_policy::outer_layers(&mut change.tx, place, &manifest).await?;
        only_narrows(outer, &change.body.policy_overrides)?;
    }
    let new = NewEntitlement {
        org_id: place.0,
        project_id: place.1,
        app_id: app.id,
        enabled: change.body.enabled,
        overrides: &change.body.policy_overrides,
        updated_by: change.caller.principal().id,
    };
    let after = shown(table::set(&mut change.tx, &new).await?);
    let effective = effective::of(&mut change.tx, place, &app).await?;
    tell(&mut change.tx, place, app.id, &after, change.caller.context.thread()).await?;
    let reason = change.body.reason.take();
    let mut told = Change::of("entitlement", format!("{}/{slug}", place.1)).to(&after).because(reason);
    if let Some(before) = &before {
        told = told.from(before);
    }
    let tag = etag::of(&after)?;
    let answer = Answer::ok(&EntitlementSet { entitlement: after, effective })?;
    change.commit(told, answer.with(header::ETAG, tag)).await
}

async fn tell(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    app: Uuid,
    after: &Entitlement,
    thread: Thread<'_>,
) -> Result<(), ApiError> {
    let event = NewEvent::of_project(place, EventType::EntitlementChanged, app, after, thread);
    outbox::insert(conn, &event).await?;
    Ok(())
}

/// Every value an outer layer forbids is told with that layer; so is an override that leaves nothing at all.
fn only_narrows(mut layers: Vec<(Layer, Limits)>, overrides: &Limits) -> Result<(), ApiError> {
    let outer = narrow(&layers);
    something_given(&outer)?;
    let beyond = outer.widened_by(overrides);
    if !beyond.is_empty() {
        let message = format!("Overrides only narrow: {}.", all_in_words(&beyond));
        return Err(ApiError::new(ErrorCode::PolicyDenied, message).with("widened", json!(beyond)));
    }
    layers.push((Layer::Project, overrides.clone()));
    nothing_left(&narrow(&layers))
}

/// Where the outer layers leave nothing, no override is to blame.
fn something_given(outer: &Effective) -> Result<(), ApiError> {
    if !outer.pairs().is_empty() {
        return Ok(());
    }
    let why: Vec<Removal> =
        outer.removed.iter().filter(|one| !matches!(one.option, Choice::GpusAbove(_))).copied().collect();
    let message = format!("The project cannot be given this app: {}.", all_in_words(&why));
    Err(ApiError::new(ErrorCode::PolicyDenied, message).with("removed", json!(why)))
}

fn nothing_left(effective: &Effective) -> Result<(), ApiError> {
    if !effective.pairs().is_empty() {
        return Ok(());
    }
    let message = "leave no operating mode and control plane scope that go together; disable the app instead";
    let problem = Invalid { pointer: "/policy_overrides".to_owned(), message: message.to_owned() };
    Err(ApiError::listing(ErrorCode::ValidationError, vec![problem]))
}

fn all_in_words(removals: &[Removal]) -> String {
    removals.iter().map(in_words).collect::<Vec<_>>().join("; ")
}

fn in_words(removal: &Removal) -> String {
    let layer = match removal.layer {
        Layer::Manifest => "the manifest",
        Layer::Platform => "the platform",
        Layer::Org => "the organization",
        Layer::Project => "a policy of the project",
    };
    match removal.option {
        Choice::Mode(mode) => format!("{layer} does not allow {mode}"),
        Choice::Scope(scope) => format!("{layer} does not allow the scope {scope}"),
        Choice::GpusAbove(most) => format!("{layer} allows at most {most} GPUs"),
    }
}
