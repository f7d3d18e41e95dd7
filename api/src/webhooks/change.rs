//! `PATCH` and `DELETE P/webhooks/{id}`. A change forgives what failed before: the receiver may be another.

use api_types::{Operate, Webhook, WebhookPatch, WebhookStatus};
use axum::response::Response;
use domain::ErrorCode;
use domain::webhook::DisabledReason;
use store::webhooks as table;

use super::{check_url, held, names, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn patch() -> Endpoint {
    Endpoint::new("update_webhook", "Change where events are sent, which, or whether any are", change)
        .header("If-Match", "Only if the webhook still has this tag.")
        .body::<WebhookPatch>()
        .answers::<Webhook>(200, "The webhook as it is now.")
        .tagged()
        .refuses(&[ErrorCode::WebhookNotFound, ErrorCode::PreconditionFailed])
}

pub(crate) fn delete() -> Endpoint {
    Endpoint::new("delete_webhook", "Send nothing there any more, and forget what was", end)
        .header("If-Match", "Only if the webhook still has this tag.")
        .body::<Operate>()
        .answers_nothing("It is gone.")
        .refuses(&[ErrorCode::WebhookNotFound, ErrorCode::PreconditionFailed])
}

async fn change(id: Id, if_match: IfMatch, mut change: Mutation<WebhookPatch>) -> Result<Response, ApiError> {
    let mut row = held(&mut change, id).await?;
    let before = shown(row.clone());
    if_match.require(&before)?;
    let patch = std::mem::take(&mut change.body);
    if let Some(url) = patch.url {
        check_url(&mut change.tx, &change.caller, &url).await?;
        row.url = url;
    }
    row.description = patch.description.or(row.description.take());
    if let Some(types) = patch.event_types {
        row.event_types = names(&types);
    }
    if let Some(status) = patch.status {
        let active = status == WebhookStatus::Active;
        let word = if active { "active" } else { "disabled" };
        let reason =
            row.disabled_reason.take().unwrap_or_else(|| DisabledReason::ByRequest.as_str().to_owned());
        (row.status, row.disabled_reason) = (word.to_owned(), (!active).then_some(reason));
    }
    let after = shown(table::update(&mut change.tx, &row).await?);
    let told = Change::of("webhook", after.id).from(&before).to(&after).because(patch.reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

async fn end(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let before = shown(held(&mut change, id).await?);
    if_match.require(&before)?;
    table::delete(&mut change.tx, before.id).await?;
    let told = Change::of("webhook", before.id).from(&before).because(change.body.reason.take());
    change.commit(told, Answer::empty()).await
}
