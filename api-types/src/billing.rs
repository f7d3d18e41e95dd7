//! What usage costs: prices, the ledger and its balance, and budgets.

use chrono::{DateTime, NaiveDate, Utc};
use domain::UsageSource;
use domain::budget::{BudgetAction, BudgetMode};
use domain::ledger::Entry;
use domain::price::{Covers, Tier};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::usage::UsageRecord;
use crate::workflow::WorkflowHandle;

/// How a quantity becomes an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriceModel {
    /// Once a month, if anything was used.
    Flat,
    /// `amount_minor` for every `per` units, in proportion.
    PerUnit,
    /// The same, with an amount for each tier of a month's quantity.
    Tiered,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "usage_source": "allocation", "usage_unit": "allocation_seconds", "model": "per_unit", "amount_minor": 250, "per": 3600,
    "currency": "EUR",
}))]
pub struct NewPrice {
    pub usage_source: UsageSource,
    #[schema(pattern = "^[a-z][a-z0-9_]{0,62}$")]
    pub usage_unit: String,
    /// Only for this app.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub app_slug: Option<String>,
    /// Only for allocations of this kind.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub sku: Option<String>,
    /// What it pays for: `capacity` for allocations, `service` for what apps count. An allocation's second is paid for once.
    #[serde(default)]
    pub covers: Option<Covers>,
    pub model: PriceModel,
    /// Of `flat` and `per_unit`.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_i64)]
    pub amount_minor: Option<i64>,
    /// Of `per_unit` and `tiered`: the number of units that an amount is for; 1 unless said otherwise.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000_000_i64)]
    pub per: Option<i64>,
    /// Of `tiered`.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub tiers: Option<Vec<Tier>>,
    /// ISO 4217; the same for all prices and ledgers.
    #[schema(pattern = "^[A-Z]{3}$")]
    pub currency: String,
    /// Windows that begin then or later are rated by it; now unless said otherwise.
    #[serde(default)]
    pub effective_from: Option<DateTime<Utc>>,
    /// Whether windows that are in the ledger already are rated again, by reversing entries.
    #[serde(default)]
    pub rerate: bool,
}

/// One version of a price. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Price {
    pub id: Uuid,
    /// Counts the prices for the same thing.
    pub version: i32,
    pub usage_source: UsageSource,
    pub usage_unit: String,
    pub app_slug: Option<String>,
    pub sku: Option<String>,
    pub covers: Covers,
    pub model: PriceModel,
    pub amount_minor: Option<i64>,
    pub per: Option<i64>,
    pub tiers: Option<Vec<Tier>>,
    pub currency: String,
    pub effective_from: DateTime<Utc>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceMade {
    #[serde(flatten)]
    pub price: Price,
    /// The run that rates again, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowHandle>,
}

/// A page of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ledger {
    /// In their order, oldest first.
    pub items: Vec<Entry>,
    /// Hand it back as `?cursor=` for the next page; `null` on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// The prices that these entries name.
    pub prices: Vec<Price>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Balance {
    pub project_id: Uuid,
    /// The sum of the ledger's entries.
    pub balance_minor: i64,
    #[schema(required)]
    pub currency: Option<String>,
    /// How many entries the ledger has, and the hash of the last.
    pub entries: i64,
    pub head_hash: String,
    /// Whether the balance is below the project's threshold.
    pub is_low: bool,
    pub threshold_minor: i64,
    pub spent_this_month_minor: i64,
    /// Everything before this moment that has a price is in it.
    pub rated_until: DateTime<Utc>,
}

/// All that a project's balance follows from, as of one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bill {
    pub as_of: DateTime<Utc>,
    pub balance: Balance,
    /// The whole ledger, in its order.
    pub entries: Vec<Entry>,
    /// Every record, in the order in which they were told.
    pub usage: Vec<UsageRecord>,
    /// Every price that applies to any of it, now or at another time.
    pub prices: Vec<Price>,
}

/// Money that came in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "amount_minor": 100_000, "currency": "EUR", "reason": "invoice 17 was paid" }))]
pub struct NewCredit {
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64)]
    pub amount_minor: i64,
    /// That of every price and every ledger, if there are any.
    #[schema(pattern = "^[A-Z]{3}$")]
    pub currency: String,
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "amount_minor": 100_000, "action": "deny_new", "mode": "simulate" }))]
pub struct SetBudget {
    /// What may be spent in a calendar month (UTC); without it there is no limit.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    pub amount_minor: Option<i64>,
    pub action: BudgetAction,
    /// `simulate` unless said otherwise: see what it would do before it does.
    #[serde(default)]
    pub mode: BudgetMode,
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    pub project_id: Uuid,
    #[schema(required)]
    pub amount_minor: Option<i64>,
    pub action: BudgetAction,
    pub mode: BudgetMode,
    #[schema(required)]
    pub currency: Option<String>,
    /// The month's first day, and what was spent since.
    pub month: NaiveDate,
    pub spent_minor: i64,
    pub is_exceeded: bool,
    /// What the action means today, whether or not it is enforced.
    pub would: BudgetEffect,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetEffect {
    /// New instances would be refused.
    pub deny_new: bool,
    /// These instances would be decommissioned.
    pub stop: Vec<Uuid>,
}
