//! The first step of a deployment: the instance is deploying. Its undo is the last of the way back and says why it failed.

use domain::{EventType, InstanceStatus, StatusReason};
use engine::{Activity, Call, Fault};
use node_protocol::Outcome;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instances::{self, AppInstance, Why};
use store::node_tasks;
use uuid::Uuid;

use super::{held, tell};
use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BeginDeploy {
    pub instance: Uuid,
}

impl Activity for BeginDeploy {
    const NAME: &'static str = "begin_deploy";
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let from = held(&mut tx, self.instance).await?.status()?;
        match from {
            InstanceStatus::Deploying => return Ok(()),
            InstanceStatus::Requested | InstanceStatus::Failed => {}
            other => return Err(Fault::terminal("state_conflict", format!("the instance is {other}"))),
        }
        app_instances::move_to(&mut tx, self.instance, from, InstanceStatus::Deploying, None).await?;
        tell(&mut tx, self.instance, EventType::InstanceDeploying, "deploy", &call.correlation_id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// An instance that is being decommissioned meanwhile stays that.
    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let from = instance.status()?;
        if !matches!(from, InstanceStatus::Requested | InstanceStatus::Deploying) {
            return Ok(());
        }
        let why = why(&mut tx, &instance, call.run).await?;
        app_instances::move_to(&mut tx, self.instance, from, InstanceStatus::Failed, Some(&why)).await?;
        tell(&mut tx, self.instance, EventType::InstanceFailed, "deploy", &call.correlation_id).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// What a step noted, or else what became of the run's tasks.
async fn why(conn: &mut PgConnection, instance: &AppInstance, run: Uuid) -> Result<Why, Fault> {
    if let (Some(reason), Some(message)) = (instance.reason()?, instance.status_message.clone()) {
        return Ok(Why { reason, message });
    }
    for task in node_tasks::of_run(conn, run).await? {
        let outcome = task.result.as_ref().and_then(|result| serde_json::from_value(result.clone()).ok());
        match outcome {
            Some(Outcome::Failed { reason, message }) => return Ok(Why { reason, message }),
            Some(Outcome::Refused { refusal }) => {
                let message = format!("the node refused the task: {refusal}");
                return Ok(Why { reason: StatusReason::TaskRejected, message });
            }
            None if !task.status()?.is_finished() => {
                let message = "the node did not answer in time".to_owned();
                return Ok(Why { reason: StatusReason::NodeUnreachable, message });
            }
            _ => {}
        }
    }
    let message = format!("the deployment did not come to its end; workflow {run} tells why");
    Ok(Why { reason: StatusReason::Internal, message })
}
