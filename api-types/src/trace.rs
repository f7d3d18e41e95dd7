//! What one request set off, as a timeline: the requests themselves, runs, their steps, tasks of nodes, events, usage and
//! audit entries, each in one line with where to read more.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// In the order in which they stand where two happen in the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// What somebody asked over HTTP, as the audit log keeps it.
    Request,
    Workflow,
    Step,
    NodeTask,
    Event,
    Usage,
    /// An audit entry that no request wrote.
    Audit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceEntry {
    pub at: DateTime<Utc>,
    pub kind: TraceKind,
    /// Unique among the entries of its kind.
    pub id: String,
    /// The operation, workflow, step, task or event type.
    pub name: String,
    /// How it ended or where it stands; events have none.
    pub status: Option<String>,
    /// The error code of what went wrong.
    pub code: Option<String>,
    /// What it is about, as `kind:id` or an id.
    pub subject: Option<String>,
    pub org_id: Option<Uuid>,
    /// `null` for what belongs to no project.
    pub project_id: Option<Uuid>,
    /// The run it is, or is part of.
    pub workflow_id: Option<Uuid>,
    /// Who asked.
    pub actor_id: Option<Uuid>,
    pub finished_at: Option<DateTime<Utc>>,
    /// Of usage: how much of the unit that `name` is was recorded within the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<i64>,
}
