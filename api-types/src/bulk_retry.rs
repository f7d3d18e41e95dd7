//! Retrying many runs at once after their common cause is repaired.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::{StuckCode, WorkflowHandle};
use domain::ErrorCode;

/// Which runs to retry: those named, or those a filter finds. Exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "filter": { "cause": "retries_exhausted", "kind": "demo.tour" }, "dry_run": true }))]
pub struct BulkRetry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 200)]
    pub ids: Option<Vec<Uuid>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<BulkRetryFilter>,
    /// Say what would happen and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// At most this many runs; the report says whether more match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Paused and stuck runs that match every field given; with `ended`, those that failed instead. Project, kind, cause or error
/// must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRetryFilter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StuckCode>,
    /// Text that the run's error contains, such as its code or part of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 3, max_length = 200)]
    pub error_signature: Option<String>,
    /// Runs that ended `failed` or `compensated` and after which nothing was tried: each is begun anew as another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
    /// Only runs created at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

/// One verdict per run, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkRetryReport {
    pub dry_run: bool,
    pub results: Vec<BulkVerdict>,
    /// More runs match than the limit let through.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkVerdict {
    pub id: Uuid,
    pub verdict: Verdict,
    /// The run that goes on; for a finished one a new run.
    pub workflow: Option<WorkflowHandle>,
    /// Why the run was refused.
    pub code: Option<ErrorCode>,
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Retried,
    WouldRetry,
    Refused,
}
