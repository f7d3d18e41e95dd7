//! Events are kept for thirty days, far longer than any delivery is tried; every night the older ones go. Who resumes
//! before what is left is told so.

use std::time::{Duration, Instant};

use activities::Env;
use engine::{
    Activity, Call, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Pool, Run, Schedule, Workflow,
};
use serde::{Deserialize, Serialize};
use store::outbox;
use tracing::warn;
use uuid::Uuid;

/// A night that was missed is made up for by the next.
pub const NIGHTLY: Schedule =
    Schedule { name: "forget_events", cron: "0 30 3 * * *", missed: Missed::Skip, overlap: Overlap::Skip };

const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// The most that one transaction deletes, always of one project, whose counter it holds meanwhile.
const BATCH: i64 = 1000;
/// The most of one project in a row, so that everybody has a turn before anybody has a second.
const BATCHES: u32 = 100;
/// What is left then, the next night goes on with.
const LONGEST: Duration = Duration::from_secs(3000);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetEvents {}

/// How much went, and of how many projects nothing could.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Gone {
    pub forgotten: u64,
    pub projects_held_up: usize,
}

impl Workflow for ForgetEvents {
    const NAME: &'static str = "platform.forget_events";
    const VERSION: i32 = 2;
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("forget_old_events")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What is gone does not come back. A night that fails stays, says why, and is tried by itself until it ends.
        run.pivot();
        let gone = run.step(ForgetOld {}).await?;
        run.output(&gone).await
    }
}

/// Doing it again finds less to do. It goes round as long as there is anything, however much was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetOld {}

impl Activity for ForgetOld {
    const NAME: &'static str = "forget_old_events";
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Env = Env;
    type Output = Gone;

    async fn run(&self, env: &Env, _: &Call) -> Result<Gone, Fault> {
        let (began, mut all) = (Instant::now(), Gone::default());
        loop {
            let mut tx = env.pool().begin().await?;
            let projects = outbox::outdated(&mut tx, KEPT.as_secs_f64()).await?;
            tx.rollback().await?;
            let (mut forgotten, mut held_up) = (0, 0);
            for project in projects {
                match forget(env.pool(), project).await {
                    Ok(gone) => forgotten += gone,
                    Err(error) => {
                        warn!(%project, %error, "old events of a project stay for now");
                        held_up += 1;
                    }
                }
            }
            all = Gone { forgotten: all.forgotten + forgotten, projects_held_up: held_up };
            if forgotten == 0 || began.elapsed() > LONGEST {
                return Ok(all);
            }
        }
    }
}

/// One project, a batch a transaction.
async fn forget(pool: &Pool, project: Uuid) -> sqlx::Result<u64> {
    let mut all = 0;
    for _ in 0..BATCHES {
        let mut tx = pool.begin().await?;
        let gone = outbox::forget(&mut tx, project, KEPT.as_secs_f64(), BATCH).await?;
        tx.commit().await?;
        all += gone;
        if gone < BATCH.unsigned_abs() {
            break;
        }
    }
    Ok(all)
}
