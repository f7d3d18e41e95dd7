//! Usage as apps tell it: a batch of `CloudEvents`, each judged on its own.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, Ref};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// At most 500 events. One that is wrong is refused by its verdict and fails no other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UsageBatch(pub Vec<UsageEvent>);

impl UsageBatch {
    pub const MOST: usize = 500;
}

impl PartialSchema for UsageBatch {
    fn schema() -> RefOr<Schema> {
        let events = ArrayBuilder::new().items(Ref::from_schema_name(UsageEvent::name()));
        let example = json!([{
            "specversion": "1.0", "type": "app.usage", "source": "/apps/notes", "id": "request-4711",
            "time": "2026-11-17T09:30:00Z", "subject": "01970000-0000-7000-8000-000000000010",
            "data": { "usage_unit": "tokens", "quantity": 1280 },
        }]);
        events.max_items(Some(UsageBatch::MOST)).examples([example]).into()
    }
}

impl ToSchema for UsageBatch {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((UsageEvent::name().into_owned(), UsageEvent::schema()));
        UsageEvent::schemas(schemas);
    }
}

/// A `CloudEvent`. Attributes that are not named here are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageEvent {
    #[serde(rename = "type")]
    #[schema(pattern = "^app\\.usage$", example = "app.usage")]
    pub kind: String,
    /// Whoever counts; not under `/platform`, which is the platform's own.
    #[schema(min_length = 1, max_length = 255, example = "/apps/notes")]
    pub source: String,
    /// The same `source` and `id` again is the same event. Where an event of another instance has them, only what an instance's
    /// own identity tells is taken; anybody else's is refused.
    #[schema(min_length = 1, max_length = 128)]
    pub id: String,
    /// When it was used.
    pub time: DateTime<Utc>,
    /// The instance.
    pub subject: Uuid,
    pub data: UsageData,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageData {
    /// The unit that the version's `metering` declares.
    #[schema(example = "tokens")]
    pub usage_unit: String,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_i64)]
    pub quantity: i64,
    /// The app's own name for what was done, such as a request's.
    #[serde(default)]
    #[schema(max_length = 255)]
    pub reference_id: Option<String>,
    /// Whatever else is worth keeping; at most 4 KiB.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
}

/// One verdict per event, in the order of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageResults {
    pub results: Vec<UsageResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageResult {
    /// The event's id; `null` where it had none.
    #[schema(required)]
    pub id: Option<String>,
    pub verdict: UsageVerdict,
    /// Of a refusal: `invalid`, `too_late`, `in_the_future`, `unknown_instance`, `not_your_instance`, `unknown_unit`,
    /// `counted_by_platform` or `taken`, and after a colon what exactly is wrong.
    #[schema(required)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageVerdict {
    Accepted,
    /// It was told before; nothing changed.
    Duplicate,
    Rejected,
}
