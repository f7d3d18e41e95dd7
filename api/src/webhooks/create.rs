//! `POST P/webhooks`: the webhook, and the one time its secret is told. A project has so many and no more: each of them is
//! delivered to by itself.

use api_types::{NewWebhook, WebhookWithSecret};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use store::webhooks as table;
use uuid::Uuid;

use super::secret::NewSecret;
use super::{check_url, names, place, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

/// Those that are disabled count too: they may be active again at any time.
const MOST: i64 = 20;

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_webhook", "Send the project's events somewhere, from now on", make)
        .body::<NewWebhook>()
        .answers::<WebhookWithSecret>(201, "The webhook; `secret` is told this once.")
        .refuses(&[ErrorCode::StateConflict])
}

async fn make(Shared(state): Shared<State>, mut change: Mutation<NewWebhook>) -> Result<Response, ApiError> {
    let (org_id, project_id) = place(&change.caller)?;
    check_url(&mut change.tx, &change.caller, &change.body.url).await?;
    if table::count_to_add(&mut change.tx, project_id).await? >= MOST {
        let message =
            format!("A project has at most {MOST} webhooks; delete one, or change what it is sent.");
        return Err(ApiError::new(ErrorCode::StateConflict, message).with("most", MOST));
    }
    let id = Uuid::now_v7();
    let secret = NewSecret::of(&state, id)?;
    let new = table::NewWebhook {
        id,
        org_id,
        project_id,
        url: &change.body.url,
        description: change.body.description.as_deref(),
        event_types: &names(&change.body.event_types),
        secret: &secret.sealed,
        created_by: change.caller.principal().id,
    };
    let webhook = shown(table::insert(&mut change.tx, &new).await?);
    let told = Change::of("webhook", id).to(&webhook);
    let location = format!("/api/v1/projects/{project_id}/webhooks/{id}");
    let body = WebhookWithSecret {
        webhook,
        secret: Some(secret.plain.expose().clone()),
        secret_already_delivered: false,
    };
    change.commit(told, Answer::created(location, &body)?.once(&["secret"])).await
}
