//! Says on the instance, and tells, that its node cannot take the workload away. The first try fails, so that the run rests where people
//! look for what is stuck; tried again, slowly by itself or at once by an operator, it lets the run ask the node anew.

use domain::{EventType, StatusReason};
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::app_instances::{self, Why};
use uuid::Uuid;

use super::{held, tell, thread};
use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportFailedRemoval {
    pub instance: Uuid,
    pub trouble: String,
}

impl Activity for ReportFailedRemoval {
    const NAME: &'static str = "report_failed_removal";
    const RETRY: Retry = Retry::times(1);
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        if call.attempt > 1 {
            return Ok(());
        }
        let mut tx = env.engine.pool().begin().await?;
        held(&mut tx, self.instance).await?;
        let why = Why { reason: StatusReason::TaskRejected, message: self.trouble.clone() };
        app_instances::note_reason(&mut tx, self.instance, &why).await?;
        tell(&mut tx, self.instance, EventType::InstanceFailed, "decommission", thread(call)).await?;
        tx.commit().await?;
        Err(Fault::retry("removal_failed", self.trouble.clone()))
    }
}
