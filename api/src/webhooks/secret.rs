//! `POST P/webhooks/{id}/rotate-secret`: a new secret beside the old one, which signs too for a day, so that receivers
//! can change over without losing anything.

use api_types::{Operate, WebhookWithSecret};
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::Response;
use clients::webhook::new_secret;
use domain::webhook::CHANGE_OVER;
use domain::{ErrorCode, Secret};
use store::webhooks as table;
use uuid::Uuid;

use super::{held, shown};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{self, IfMatch};
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;
use crate::state::State;

pub(crate) fn rotate_secret() -> Endpoint {
    Endpoint::new("rotate_webhook_secret", "Make a new secret; the old one signs too for a day", rotate)
        .header("If-Match", "Only if the webhook still has this tag.")
        .body::<Operate>()
        .answers::<WebhookWithSecret>(
            200,
            "The webhook, which `ETag` tags, and its new secret, told this once.",
        )
        .tagged()
        .refuses(&[ErrorCode::WebhookNotFound, ErrorCode::PreconditionFailed])
}

/// A secret that was just made: as the receiver gets it, and as it is kept.
pub(super) struct NewSecret {
    pub(super) plain: Secret<String>,
    pub(super) sealed: String,
}

impl NewSecret {
    pub(super) fn of(state: &State, webhook: Uuid) -> Result<NewSecret, ApiError> {
        let plain = new_secret();
        let bytes = Secret::new(plain.expose().clone().into_bytes());
        let sealed = state.keys.sealer.seal(&bytes, &table::sealed_for(webhook));
        Ok(NewSecret { plain, sealed: sealed.map_err(|fault| ApiError::internal(&fault))? })
    }
}

async fn rotate(
    Shared(state): Shared<State>,
    id: Id,
    if_match: IfMatch,
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let before = held(&mut change, id).await?;
    if_match.require(&shown(before.clone()))?;
    let secret = NewSecret::of(&state, before.id)?;
    let seconds = CHANGE_OVER.as_secs_f64();
    let after = shown(table::rotate(&mut change.tx, before.id, &secret.sealed, seconds).await?);
    let reason = change.body.reason.take();
    let told = Change::of("webhook", after.id).from(&shown(before)).to(&after).because(reason);
    let tag = etag::of(&after)?;
    let body = WebhookWithSecret {
        webhook: after,
        secret: Some(secret.plain.expose().clone()),
        secret_already_delivered: false,
    };
    change.commit(told, Answer::ok(&body)?.with(header::ETAG, tag).once(&["secret"])).await
}
