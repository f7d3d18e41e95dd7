//! The first step of a deployment: the instance is deploying. Its undo is the last of the way back and says why it failed.

use domain::{EventType, InstanceStatus};
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use store::app_instances;
use uuid::Uuid;

use super::{held, tell, tell_canary, thread, why};
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
        tell(&mut tx, self.instance, EventType::InstanceDeploying, "deploy", thread(call)).await?;
        tx.commit().await?;
        Ok(())
    }

    /// An instance that is being decommissioned meanwhile stays that.
    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let why = why(&mut tx, self.instance, call.run).await?;
        // Versions are locked before instances.
        if why.reason.blames_version() {
            tell_canary(&mut tx, self.instance, None, (call.run, thread(call)), true).await?;
        }
        let from = held(&mut tx, self.instance).await?.status()?;
        if !matches!(from, InstanceStatus::Requested | InstanceStatus::Deploying) {
            return Ok(());
        }
        app_instances::move_to(&mut tx, self.instance, from, InstanceStatus::Failed, Some(&why)).await?;
        tell(&mut tx, self.instance, EventType::InstanceFailed, "deploy", thread(call)).await?;
        tx.commit().await?;
        Ok(())
    }
}
