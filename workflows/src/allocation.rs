//! `allocation.release`: what stands on an allocation is decommissioned first, each with its own proof; only then is the
//! allocation given back.

use std::time::Duration;

use activities::Env;
use domain::{AllocationStatus, InstanceStatus};
use engine::{Activity, Call, Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use store::{allocations, app_instances};
use uuid::Uuid;

use crate::instance::decommission::{end, end_after_all};

/// How long the first look waits for the next; later ones wait twice as long each, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// One active run per allocation.
pub fn target(allocation: Uuid) -> String {
    format!("allocation:{allocation}")
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReleaseAllocation {
    pub allocation: Uuid,
}

impl Workflow for ReleaseAllocation {
    const NAME: &'static str = "allocation.release";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::activity("decommission_instances"),
        PlannedStep::wait("instance_gone"),
        PlannedStep::transact("mark_released"),
    ];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.pivot();
        let allocation = self.allocation;
        let mut wait = FIRST_WAIT;
        for look in 0_u32.. {
            let left = run.step_for(look, DecommissionInstances { allocation }).await?;
            if left == 0 {
                break;
            }
            let _: Option<Value> = run.wait_until("instance_gone", look, wait).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        run.transact("mark_released", move |conn| Box::pin(mark_released(conn, allocation))).await
    }
}

async fn mark_released(conn: &mut PgConnection, allocation: Uuid) -> Result<(), Fault> {
    let (from, to) = (AllocationStatus::Releasing, AllocationStatus::Released);
    allocations::find_locked(conn, allocation).await?;
    allocations::move_to(conn, allocation, from, to).await?;
    Ok(())
}

/// Asks for the end of everything on the allocation that was not asked for it yet, and once more where whoever was asked for it
/// acts no more. Answers how much is still there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DecommissionInstances {
    pub allocation: Uuid,
}

impl Activity for DecommissionInstances {
    const NAME: &'static str = "decommission_instances";
    type Env = Env;
    type Output = usize;

    async fn run(&self, env: &Env, call: &Call) -> Result<usize, Fault> {
        let mut tx = env.pool().begin().await?;
        let left = app_instances::on_allocation(&mut tx, self.allocation).await?;
        tx.rollback().await?;
        for id in &left {
            end_one(env, *id, call).await?;
        }
        env.engine().wake();
        Ok(left.len())
    }
}

/// In a transaction of its own, because one that others act on is left as it is, and keeps no other from its end.
async fn end_one(env: &Env, id: Uuid, call: &Call) -> Result<(), Fault> {
    let mut tx = env.pool().begin().await?;
    let Some(instance) = app_instances::find_locked(&mut tx, id).await? else { return Ok(()) };
    match instance.status()? {
        InstanceStatus::Decommissioned => return Ok(()),
        InstanceStatus::Decommissioning => {
            if !end_after_all(env, &mut tx, &instance, call).await? {
                return Ok(());
            }
        }
        _ => end(env, &mut tx, &instance, call).await?,
    }
    tx.commit().await?;
    Ok(())
}
