//! What a node answers: what became of a task, and how far a long one is.

use std::collections::BTreeMap;

use domain::{LogLine, SmokeVerdict, StatusReason, TaskStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::envelope::Refusal;
use crate::signed::Signed;

/// The body of `POST …/tasks/{task_id}/result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "idempotency_key": "01970000-0000-7000-8000-000000000009/launch_workload/do",
    "outcome": { "status": "failed", "reason": "image_pull_failed", "message": "manifest unknown" }
}))]
pub struct TaskResult {
    pub idempotency_key: String,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Succeeded {
        output: Output,
    },
    Failed {
        reason: StatusReason,
        /// For a person; never holds a secret.
        message: String,
    },
    Refused {
        refusal: Refusal,
    },
}

impl Outcome {
    pub const fn status(&self) -> TaskStatus {
        match self {
            Outcome::Succeeded { .. } => TaskStatus::Succeeded,
            Outcome::Failed { .. } => TaskStatus::Failed,
            Outcome::Refused { .. } => TaskStatus::Refused,
        }
    }

    /// What a launch brought, where it was seen serving.
    pub fn serving(&self) -> Option<&[Launched]> {
        match self {
            Outcome::Succeeded { output: Output::Launched { members } } => {
                members.iter().any(|member| member.serves).then_some(members)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    Launched {
        members: Vec<Launched>,
    },
    Controlled,
    /// Signed by the node's own key: an [`crate::Evidence`].
    Removed {
        evidence: Signed,
    },
    Healthy {
        /// How often it was asked before it served.
        tries: u32,
    },
    Logs {
        /// Oldest first.
        lines: Vec<LogLine>,
        /// Whether lines that were asked for were left out, or one was cut.
        truncated: bool,
    },
    /// The version's own tests were asked; whether they passed is in the verdicts.
    Asked {
        requests: Vec<SmokeVerdict>,
    },
    KeysInstalled,
    Updated {
        version: String,
    },
}

/// A member that was started, and where it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Launched {
    pub member: String,
    pub container_id: String,
    pub digest: String,
    /// Name of the port to the port on the node's loopback address.
    pub ports: BTreeMap<String, u16>,
    /// Whether it answered its probe right after its start, so that nobody need ask it. Agents of earlier releases do not say.
    #[serde(default)]
    pub serves: bool,
}

/// The body of `POST …/tasks/{task_id}/progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "phase": "pulling", "bytes_done": 1048576, "bytes_total": 73400320 }))]
pub struct Progress {
    /// `pulling` while bytes come, else `working`. Agents of earlier releases tell the task's kind.
    pub phase: String,
    #[serde(default)]
    pub bytes_done: u64,
    /// 0 until it is known.
    #[serde(default)]
    pub bytes_total: u64,
}

impl Progress {
    pub fn of_bytes(bytes_done: u64, bytes_total: u64) -> Progress {
        let phase = if bytes_done < bytes_total { "pulling" } else { "working" };
        Progress { phase: phase.to_owned(), bytes_done, bytes_total }
    }
}
