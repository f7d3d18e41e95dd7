//! A webhook: where a project wants its events sent, and what became of each.

use std::fmt;

use chrono::{DateTime, Utc};
use domain::EventType;
use domain::webhook::{DeliveryStatus, DisabledReason};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    Active,
    Disabled,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "url": "https://hooks.example.com/gpuaas", "event_types": ["apps.instance.running", "apps.instance.failed"],
}))]
pub struct NewWebhook {
    /// https, on the open internet unless policy says otherwise.
    #[schema(min_length = 1, max_length = 2000)]
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// Empty: every type.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub event_types: Vec<EventType>,
}

/// What is left out stays as it is. One that is made active again goes on where it stopped, or with the oldest event that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "status": "active" }))]
pub struct WebhookPatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 2000)]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100)]
    pub event_types: Option<Vec<EventType>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WebhookStatus>,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub url: String,
    pub description: Option<String>,
    /// Empty: every type.
    #[schema(value_type = Vec<EventType>)]
    pub event_types: Vec<String>,
    pub status: WebhookStatus,
    pub disabled_reason: Option<DisabledReason>,
    /// Since when the receiver has taken nothing.
    pub failing_since: Option<DateTime<Utc>>,
    /// How many events, wanted or not, were no longer kept when the webhook went on: events are kept for thirty days.
    pub events_lost: i64,
    /// When that was found last.
    pub events_lost_at: Option<DateTime<Utc>>,
    /// Until then the secret before signs too.
    pub previous_secret_until: Option<DateTime<Utc>>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookWithSecret {
    #[serde(flatten)]
    pub webhook: Webhook,
    /// `whsec_…`, told this once; `null` when the answer is repeated.
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret_already_delivered: bool,
}

impl fmt::Debug for WebhookWithSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookWithSecret").field("webhook", &self.webhook).finish_non_exhaustive()
    }
}

/// One event on its way to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDelivery {
    pub id: Uuid,
    pub event_id: Uuid,
    pub event_type: String,
    pub status: DeliveryStatus,
    /// Tries since it was taken up, or replayed.
    pub attempts: i32,
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// What the receiver answered last.
    pub response_status: Option<i32>,
    /// Why the last try did not succeed.
    pub error: Option<String>,
    pub created_at: DateTime<Utc>,
    pub delivered_at: Option<DateTime<Utc>>,
}

/// Which deliveries to send again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "failed_since": "2026-01-31T12:00:00Z" }))]
pub struct ReplayWebhook {
    /// These, whatever became of them.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub delivery_ids: Vec<Uuid>,
    /// Every dead letter that was taken up at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<DateTime<Utc>>,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookReplayed {
    /// How many are sent again.
    pub replayed: u64,
}
