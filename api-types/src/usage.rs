//! Usage as it is read: records as they were told, or sums of them with what they cost.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::UsageSource;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A page of usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsagePage {
    /// Sums where a `window` was asked for, else records.
    pub items: Vec<UsageItem>,
    /// Hand it back as `?cursor=` for the next page; `null` on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// Everything before this moment that has a price is in the ledger.
    pub rated_until: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum UsageItem {
    Sum(UsageSum),
    Record(Box<UsageRecord>),
}

/// How wide sums are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageWindow {
    Hour,
    Day,
    Month,
}

/// What was used within one window, all together or by the columns that were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageSum {
    pub window_start: DateTime<Utc>,
    pub window_end: DateTime<Utc>,
    /// Unit to quantity.
    pub quantities: BTreeMap<String, i64>,
    /// What the ledger charged for it, in minor units.
    pub amount_minor: i64,
    /// The currency of the amount; `null` while nothing has a price.
    #[schema(required)]
    pub currency: Option<String>,
    /// Whether everything in it that has a price is in the ledger.
    pub rated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_source: Option<UsageSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_instance_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_slug: Option<String>,
}

/// What was used, as it was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageRecord {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_instance_id: Option<Uuid>,
    pub allocation_id: Option<Uuid>,
    pub app_slug: Option<String>,
    pub usage_source: UsageSource,
    pub usage_unit: String,
    pub quantity: i64,
    pub occurred_at: DateTime<Utc>,
    /// The billing window that it belongs to.
    pub window_start: DateTime<Utc>,
    pub window_end: DateTime<Utc>,
    pub operating_mode: Option<String>,
    pub control_plane_scope: Option<String>,
    pub runtime_backend: Option<String>,
    pub control_plane_component: Option<String>,
    pub correlation_id: String,
    pub reference_id: Option<String>,
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// Who told it, as the event's `source` says; under `/platform/instances/{id}/` where an event of another instance had that
    /// name already, under `/platform/meters/` where the platform counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Their own name for it, the event's `id`: the same two again are the same usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    pub recorded_at: DateTime<Utc>,
    /// The kind of the allocation, which a price may be for.
    #[schema(required)]
    pub sku: Option<String>,
    /// The price that its window was last rated by.
    #[schema(required)]
    pub price_id: Option<Uuid>,
    /// How much its window was last rated for, this and all else of the same thing together; `null` before the first time.
    #[schema(required)]
    pub rated_quantity: Option<i64>,
    /// Whether it had a price and its window is in the ledger.
    pub rated: bool,
}
