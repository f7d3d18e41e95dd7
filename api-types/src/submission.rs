//! Manifests under review.

use chrono::{DateTime, Utc};
use domain::json_diff::Difference;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A manifest that an app team sent for review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    pub id: Uuid,
    pub org_id: Uuid,
    /// The team's project; with approval it owns the app.
    pub project_id: Uuid,
    pub app_slug: String,
    pub version: String,
    pub status: SubmissionStatus,
    /// SHA-256 of the normal form; the same content has the same digest.
    pub content_digest: String,
    pub submitted_by: Uuid,
    pub decided_by: Option<Uuid>,
    pub decided_at: Option<DateTime<Utc>>,
    /// Why it was approved or rejected.
    pub reason: Option<String>,
    pub created_at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionStatus {
    Pending,
    Approved,
    Rejected,
    /// The team sent other content for the same version before anybody decided.
    Superseded,
}

/// A submission with what a reviewer reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubmissionDetail {
    #[serde(flatten)]
    pub submission: Submission,
    /// In its normal form, with every default filled in.
    pub manifest: Value,
    /// What `diff` compares with: the same version where it is a draft already, else the next older one; null for the
    /// first version of an app.
    pub previous_version: Option<String>,
    pub diff: Vec<Difference>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "Reviewed with the team." }))]
pub struct ApproveSubmission {
    /// Told to the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "Say what the app does." }))]
pub struct RejectSubmission {
    /// Told to the team: what must change.
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}
