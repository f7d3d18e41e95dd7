//! The lifecycle of an instance, one file per action.

pub mod decommission;
pub mod deploy;

use std::time::Duration;

use activities::Env;
use domain::StatusReason;
use engine::{Fault, Halt, Run};
use node_protocol::{Outcome, Output};
use uuid::Uuid;

/// One active run per instance.
pub fn target(instance: Uuid) -> String {
    format!("app_instance:{instance}")
}

/// What the node answered. A failure, a refusal or silence turns the run back.
async fn answer(run: &mut Run<Env>, name: &'static str, within: Duration) -> Result<Output, Halt> {
    let (reason, message) = match run.wait_until(name, "", within).await? {
        Some(Outcome::Succeeded { output }) => return Ok(output),
        Some(Outcome::Failed { reason, message }) => (reason, message),
        Some(Outcome::Refused { refusal }) => {
            (StatusReason::TaskRejected, format!("the node refused the task: {refusal}"))
        }
        None => (StatusReason::NodeUnreachable, format!("the node did not answer within {within:?}")),
    };
    Err(run.fail(&Fault::terminal(reason.as_str(), message)).await)
}
