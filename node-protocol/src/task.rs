//! The kinds of task a node does: a closed list. A kind that is not here is refused, and so is a field.

use chrono::{DateTime, Utc};
use domain::Digest;
use domain::manifest::SmokeTest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::workload::{Generations, Probe, Workload};

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    OciLaunch(Box<OciLaunch>),
    OciControl(Control),
    OciRemove(Remove),
    ComposeLaunch(ComposeLaunch),
    ComposeControl(Control),
    ComposeRemove(Remove),
    SshInstallAuthorizedKeys(AuthorizedKeys),
    DiagHealthProbe(HealthProbe),
    DiagLogs(ReadLogs),
    AgentSelfUpdate(SelfUpdate),
}

/// Pull the image and start the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OciLaunch {
    pub workload: Workload,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    pub instance_id: Uuid,
    pub generation: i64,
    pub action: ControlAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAction {
    Start,
    Stop,
    Restart,
}

/// Take an instance's workloads away and show that they are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    pub instance_id: Uuid,
    pub generations: Generations,
    /// The instance ends here: its network goes too, and nothing of these generations is ever started again.
    pub for_good: bool,
}

/// Members of one stack, on a network of their own, started in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComposeLaunch {
    pub instance_id: Uuid,
    pub members: Vec<Workload>,
}

/// The complete desired set of keys inside the agent's own marked block; other lines are not touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorizedKeys {
    pub user: String,
    pub keys: Vec<String>,
}

impl AuthorizedKeys {
    /// The account of a node that apps are set up by; nodes for apps that ask for such access have one of this name.
    pub const USER: &'static str = "gpuaas";
}

/// Ask a workload until it serves, or its grace period is over; then make the requests of its version's own tests, each once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthProbe {
    pub instance_id: Uuid,
    pub member: String,
    pub generation: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<SmokeTest>,
}

/// Tell what a member wrote last. Somebody waits for it, and nobody keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadLogs {
    pub instance_id: Uuid,
    pub member: String,
    /// At most so many lines, and never more than [`ReadLogs::MOST_LINES`].
    pub tail: u32,
    /// Only what was written after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
}

impl ReadLogs {
    pub const MOST_LINES: u32 = 1000;
    /// Of text in all: even if every byte must be escaped, a result fits into a request.
    pub const MOST_BYTES: usize = 128 * 1024;
}

/// Try another program of the agent, and stay with it if it reports. Where it is had from is not said: it is a release of the
/// very platform that the node enrolled with. The task's signature covers the digest, so what comes is believed for no other reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfUpdate {
    pub version: String,
    /// Its name in the release, by [`program_for`](crate::program_for).
    pub artifact: String,
    pub digest: Digest,
    pub size_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum TaskFault {
    #[error("`{0}` is not a kind of task")]
    UnknownKind(String),
    #[error("the input of `{kind}` cannot be read: {error}")]
    BadInput { kind: String, error: serde_json::Error },
}

impl Task {
    pub const KINDS: [&'static str; 10] = [
        "oci.launch",
        "oci.control",
        "oci.remove",
        "compose.launch",
        "compose.control",
        "compose.remove",
        "ssh.install_authorized_keys",
        "diag.health_probe",
        "diag.logs",
        "agent.self_update",
    ];

    pub const fn kind(&self) -> &'static str {
        match self {
            Task::OciLaunch(_) => "oci.launch",
            Task::OciControl(_) => "oci.control",
            Task::OciRemove(_) => "oci.remove",
            Task::ComposeLaunch(_) => "compose.launch",
            Task::ComposeControl(_) => "compose.control",
            Task::ComposeRemove(_) => "compose.remove",
            Task::SshInstallAuthorizedKeys(_) => "ssh.install_authorized_keys",
            Task::DiagHealthProbe(_) => "diag.health_probe",
            Task::DiagLogs(_) => "diag.logs",
            Task::AgentSelfUpdate(_) => "agent.self_update",
        }
    }

    /// Whether tasks of this kind change nothing on the node: such a task waits for no other and is never owed.
    pub fn only_looks(kind: &str) -> bool {
        kind == "diag.logs"
    }

    /// Whether tasks of this kind are about the node itself, whose turn they take and whose numbers they have.
    pub fn is_of_the_node(kind: &str) -> bool {
        kind == "ssh.install_authorized_keys"
    }

    pub fn input(&self) -> Result<Value, serde_json::Error> {
        match self {
            Task::OciLaunch(input) => serde_json::to_value(input),
            Task::OciControl(input) | Task::ComposeControl(input) => serde_json::to_value(input),
            Task::OciRemove(input) | Task::ComposeRemove(input) => serde_json::to_value(input),
            Task::ComposeLaunch(input) => serde_json::to_value(input),
            Task::SshInstallAuthorizedKeys(input) => serde_json::to_value(input),
            Task::DiagHealthProbe(input) => serde_json::to_value(input),
            Task::DiagLogs(input) => serde_json::to_value(input),
            Task::AgentSelfUpdate(input) => serde_json::to_value(input),
        }
    }

    pub fn read(kind: &str, input: &Value) -> Result<Task, TaskFault> {
        let task = match kind {
            "oci.launch" => Box::<OciLaunch>::deserialize(input).map(Task::OciLaunch),
            "oci.control" => Control::deserialize(input).map(Task::OciControl),
            "oci.remove" => Remove::deserialize(input).map(Task::OciRemove),
            "compose.launch" => ComposeLaunch::deserialize(input).map(Task::ComposeLaunch),
            "compose.control" => Control::deserialize(input).map(Task::ComposeControl),
            "compose.remove" => Remove::deserialize(input).map(Task::ComposeRemove),
            "ssh.install_authorized_keys" => {
                AuthorizedKeys::deserialize(input).map(Task::SshInstallAuthorizedKeys)
            }
            "diag.health_probe" => HealthProbe::deserialize(input).map(Task::DiagHealthProbe),
            "diag.logs" => ReadLogs::deserialize(input).map(Task::DiagLogs),
            "agent.self_update" => SelfUpdate::deserialize(input).map(Task::AgentSelfUpdate),
            other => return Err(TaskFault::UnknownKind(other.to_owned())),
        };
        task.map_err(|error| TaskFault::BadInput { kind: kind.to_owned(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn removal() -> Task {
        let generations = Generations::UpTo(4);
        Task::OciRemove(Remove { instance_id: Uuid::from_u128(1), generations, for_good: true })
    }

    #[test]
    fn a_task_reads_back_as_it_was_written() {
        let task = removal();
        assert_eq!(Task::read(task.kind(), &task.input().unwrap()).unwrap(), task);
    }

    #[test]
    fn unknown_kinds_and_unknown_fields_are_refused() {
        assert!(matches!(Task::read("shell.run", &json!({})), Err(TaskFault::UnknownKind(_))));
        let mut input = removal().input().unwrap();
        input["force"] = json!(true);
        assert!(matches!(Task::read("oci.remove", &input), Err(TaskFault::BadInput { .. })));
    }

    /// Every kind of the list is one that `read` knows: an empty input is a bad input of it, not an unknown kind.
    #[test]
    fn the_list_of_kinds_is_what_is_read() {
        for kind in Task::KINDS {
            assert!(matches!(Task::read(kind, &json!({})), Err(TaskFault::BadInput { .. })), "{kind}");
        }
    }
}
