//! `GET P/webhooks/{id}/deliveries` and `POST …/replay`: what was sent and what was not, and sending it again.

use api_types::{Page, ReplayWebhook, WebhookDelivery, WebhookReplayed};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use domain::webhook::DeliveryStatus;
use store::webhook_deliveries::{self as table, Delivery};
use store::webhooks;
use utoipa::PartialSchema;

use super::{held, place};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::paging::Paging;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn deliveries() -> Endpoint {
    Endpoint::new("list_webhook_deliveries", "What was sent and what was not, newest first", all)
        .query(
            "status",
            DeliveryStatus::schema(),
            "Only deliveries of this status; `failed` are the dead letters.",
        )
        .answers_page::<WebhookDelivery>("A page of deliveries.")
        .refuses(&[ErrorCode::WebhookNotFound])
}

pub(crate) fn replay() -> Endpoint {
    Endpoint::new("replay_webhook", "Send deliveries again", again)
        .body::<ReplayWebhook>()
        .answers::<WebhookReplayed>(
            200,
            "How many are sent again; a disabled webhook sends them once it is active.",
        )
        .refuses(&[ErrorCode::WebhookNotFound])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    mut params: Params,
) -> Result<Json<Page<WebhookDelivery>>, ApiError> {
    let paging = Paging::read(&mut params, "whd1");
    let status = params.parsed("status", "pending, delivered or failed");
    params.finish()?;
    let missing = ErrorCode::WebhookNotFound;
    let mut tx = state.read().await?;
    let webhook = webhooks::find(&mut tx, place(&caller)?.1, id.or(missing)?).await?;
    let webhook = webhook.ok_or_else(|| ApiError::plain(missing))?;
    let rows = table::list(&mut tx, webhook.id, status, paging.slice()).await?;
    tx.rollback().await?;
    let page = paging.page(rows, |row| row.id, |row| row);
    let items = page.items.into_iter().map(shown).collect::<sqlx::Result<_>>()?;
    Ok(Json(Page { items, next_cursor: page.next_cursor }))
}

async fn again(id: Id, mut change: Mutation<ReplayWebhook>) -> Result<Response, ApiError> {
    let webhook = held(&mut change, id).await?;
    let ReplayWebhook { delivery_ids, failed_since, .. } = &change.body;
    let replayed = table::replay(&mut change.tx, webhook.id, delivery_ids, *failed_since).await?;
    let answer = WebhookReplayed { replayed };
    let told = Change::of("webhook", webhook.id).to(&answer).because(change.body.reason.take());
    change.commit(told, Answer::ok(&answer)?).await
}

fn shown(row: Delivery) -> sqlx::Result<WebhookDelivery> {
    Ok(WebhookDelivery {
        status: row.status()?,
        id: row.id,
        event_id: row.event_id,
        event_type: row.event_type,
        attempts: row.attempts,
        next_attempt_at: row.next_attempt_at,
        response_status: row.response_status,
        error: row.error,
        created_at: row.created_at,
        delivered_at: row.delivered_at,
    })
}
