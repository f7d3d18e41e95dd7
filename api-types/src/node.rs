//! A node: a machine that runs workloads, and the one-time token it enrols with.

use std::fmt;

use chrono::{DateTime, Utc};
use domain::NodeStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::WorkflowHandle;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub id: Uuid,
    pub name: String,
    pub status: NodeStatus,
    /// Where its workloads are reached; `null` until it enrolled.
    pub address: Option<String>,
    /// `docker`, or `simulated` where no container is ever started.
    pub driver: Option<String>,
    pub agent_version: Option<String>,
    /// Cores, memory and GPUs, as the agent found them.
    pub inventory: Option<Value>,
    /// The containers it told of last.
    pub workloads: Value,
    /// How busy its GPUs are, each with its `index`, `busy_percent` and `memory_used_bytes`; none where it did not tell.
    #[serde(default)]
    pub gpus: Value,
    pub last_seen_at: Option<DateTime<Utc>>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub enrolled_at: Option<DateTime<Utc>>,
    pub allowed_actions: Vec<NodeAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeAction {
    Drain,
    Activate,
    Update,
}

/// The node together with the run that acts on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeWithRun {
    #[serde(flatten)]
    pub node: Node,
    pub workflow: WorkflowHandle,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "rack-7-gpu-2" }))]
pub struct NewNode {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The node together with the token it enrols with. The token is told once.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeWithToken {
    #[serde(flatten)]
    pub node: Node,
    /// Good once, for a day; `null` when the same request is answered again.
    pub enrolment_token: Option<String>,
    pub enrolment_expires_at: DateTime<Utc>,
    pub secret_already_delivered: bool,
}

impl fmt::Debug for NodeWithToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeWithToken").field("node", &self.node).finish_non_exhaustive()
    }
}
