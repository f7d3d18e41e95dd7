//! `P/webhooks`: where a project wants its events sent. A secret is told once, when it is made; what was sent, and what
//! was not, can be looked up and sent again.

mod change;
mod create;
mod deliveries;
mod read;
mod secret;

pub(crate) use change::{delete, patch};
pub(crate) use create::create;
pub(crate) use deliveries::{deliveries, replay};
pub(crate) use read::{list, show};
pub(crate) use secret::rotate_secret;

use api_types::{Webhook, WebhookStatus};
use domain::{ErrorCode, EventType, PolicyKey};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::webhooks as table;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::mutation::Mutation;
use crate::path::Id;

fn place(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    match (caller.scope.org(), caller.scope.project()) {
        (Some(org), Some(project)) => Ok((org, project)),
        _ => Err(ApiError::internal(&"a route of projects outside of one")),
    }
}

/// The webhook of this project, held still until the transaction ends.
async fn held<T>(change: &mut Mutation<T>, id: Id) -> Result<table::Webhook, ApiError> {
    let missing = ErrorCode::WebhookNotFound;
    let (_, project) = place(&change.caller)?;
    let webhook = table::find_locked(&mut change.tx, id.or(missing)?).await?;
    webhook.filter(|webhook| webhook.project_id == project).ok_or_else(|| ApiError::plain(missing))
}

/// Whether events may be sent there at all; where its name leads is looked at each time one is.
async fn check_url(conn: &mut PgConnection, caller: &Caller, url: &str) -> Result<(), ApiError> {
    let (org, project) = place(caller)?;
    let subject = Subject { user: None, project: Some(project), org: Some(org) };
    let private = policies::flag(conn, PolicyKey::AllowPrivateAddresses, subject).await?;
    let checked = clients::webhook::allowed(url, private);
    checked.map(drop).map_err(|fault| ApiError::invalid("/url", fault.to_string()))
}

fn names(types: &[EventType]) -> Vec<String> {
    types.iter().map(|kind| kind.as_str().to_owned()).collect()
}

fn shown(row: table::Webhook) -> Webhook {
    Webhook {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        status: if row.is_active() { WebhookStatus::Active } else { WebhookStatus::Disabled },
        url: row.url,
        description: row.description,
        event_types: row.event_types,
        disabled_reason: row.disabled_reason.and_then(|reason| reason.parse().ok()),
        failing_since: row.failing_since,
        events_lost: row.events_lost,
        events_lost_at: row.events_lost_at,
        previous_secret_until: row.previous_secret_until,
        created_by: row.created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}
