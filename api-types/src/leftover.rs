//! What was not given back: removals that nodes owe, and what instances hold although they should not.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A removal that a silent node still owes; it is collected when the node returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeardownDebt {
    pub app_instance_id: Uuid,
    pub node_id: Uuid,
    /// The run that waits for it.
    pub workflow_id: Uuid,
    pub created_at: DateTime<Utc>,
}

/// What an instance holds although it should not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceLeak {
    pub app_instance_id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub status: String,
    /// `quantity kind resource`.
    pub held: Vec<String>,
    /// When the oldest of it was taken.
    pub since: DateTime<Utc>,
}
