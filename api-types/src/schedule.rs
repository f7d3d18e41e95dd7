//! A schedule: which workflow starts by itself, when, and what happens to ticks that could not be kept.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::RunStatus;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub name: String,
    /// The workflow each tick starts.
    pub kind: String,
    /// In UTC.
    pub cron: String,
    pub paused: bool,
    pub missed: MissedTicks,
    pub overlap: Overlap,
    pub next_at: DateTime<Utc>,
    pub last_at: Option<DateTime<Utc>>,
    pub last_run_id: Option<Uuid>,
    pub last_run_status: Option<RunStatus>,
    /// How its last run that has ended, ended; `null` until one has.
    pub last_result: Option<ScheduleResult>,
}

/// What a scheduled run found or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleResult {
    pub run_id: Uuid,
    pub status: RunStatus,
    pub finished_at: DateTime<Utc>,
    /// What it tells of its work.
    pub output: Option<Value>,
    /// Why it did not succeed.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
}

/// What becomes of ticks that passed while no process was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedTicks {
    Skip,
    One,
    All,
}

/// What becomes of a tick whose predecessor's run is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    Skip,
    Queue,
}
