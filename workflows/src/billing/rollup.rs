//! `billing.rollup`: every minute what was used becomes what it costs. Windows that are over are rated and posted to the
//! ledger, exactly once; what came late opens its window again and is corrected. Then budgets that are spent take effect.

use activities::Env;
use domain::InstanceStatus;
use engine::{Activity, Call, Fault, Halt, Missed, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{app_instances, budgets};
use tracing::warn;
use uuid::Uuid;

use super::post::post_all;
use crate::instance::decommission;

/// A minute that was missed needs no making up: the next rates whatever is open.
pub const MINUTELY: Schedule =
    Schedule { name: "metering_rollup", cron: "20 * * * * *", missed: Missed::One, overlap: Overlap::Skip };

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RollUpUsage {}

impl Workflow for RollUpUsage {
    const NAME: &'static str = "billing.rollup";
    const PLAN: &'static [PlannedStep] =
        &[PlannedStep::transact("post_windows"), PlannedStep::activity("stop_spent")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What was posted stays: whatever fails then waits for a person, and is not tried past them.
        run.pivot();
        let posted = post_all(run).await?;
        let stopped = run.step(StopSpent {}).await?;
        run.output(&json!({
            "windows": posted.windows, "entries": posted.entries, "projects_set_aside": posted.set_aside,
            "stopped": stopped.asked, "not_stopped": stopped.refused,
        }))
        .await
    }
}

/// Asks for the end of everything that runs in projects whose budget says so. What cannot be ended now is noted, and asked
/// for again by the next run: nobody else waits for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StopSpent {}

/// How many ends were asked for, and how many could not be.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(from = "Told")]
pub struct Stopped {
    pub asked: usize,
    pub refused: usize,
}

/// As journals have it; those of releases before hold how many were asked for.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Asked(usize),
    Both { asked: usize, refused: usize },
}

impl From<Told> for Stopped {
    fn from(told: Told) -> Stopped {
        match told {
            Told::Asked(asked) => Stopped { asked, refused: 0 },
            Told::Both { asked, refused } => Stopped { asked, refused },
        }
    }
}

impl Activity for StopSpent {
    const NAME: &'static str = "stop_spent";
    type Env = Env;
    type Output = Stopped;

    async fn run(&self, env: &Env, call: &Call) -> Result<Stopped, Fault> {
        let mut stopped = Stopped::default();
        let mut tx = env.pool().begin().await?;
        let spent = budgets::stopping(&mut tx).await?;
        tx.commit().await?;
        for project in spent {
            let mut tx = env.pool().begin().await?;
            let standing = app_instances::standing_in(&mut tx, project).await?;
            tx.commit().await?;
            for instance in standing {
                match stop(env, instance, call).await {
                    Ok(asked) => stopped.asked += usize::from(asked),
                    Err(fault) => {
                        warn!(%project, %instance, ?fault, "a budget is spent, and what runs could not be stopped");
                        stopped.refused += 1;
                    }
                }
            }
        }
        Ok(stopped)
    }
}

/// One instance, one transaction: what was asked for stays asked for, whatever happens to the next.
async fn stop(env: &Env, id: Uuid, call: &Call) -> Result<bool, Fault> {
    use InstanceStatus::{Decommissioned, Decommissioning};
    let mut tx = env.pool().begin().await?;
    let Some(instance) = app_instances::find_locked(&mut tx, id).await? else { return Ok(false) };
    if matches!(instance.status()?, Decommissioned | Decommissioning) {
        return Ok(false);
    }
    decommission::end(env, &mut tx, &instance, call).await?;
    tx.commit().await?;
    env.engine().wake();
    Ok(true)
}
