//! Events are kept for thirty days, far longer than any delivery is tried; every night the older ones go. Who resumes
//! before what is left is told so.

use std::time::Duration;

use activities::Env;
use engine::{Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::outbox;

/// A night that was missed is made up for by the next.
pub const NIGHTLY: Schedule =
    Schedule { name: "forget_events", cron: "0 30 3 * * *", missed: Missed::Skip, overlap: Overlap::Skip };

const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// The most that one transaction deletes of one project.
const BATCH: i64 = 1000;
/// Enough for one night.
const ROUNDS: u32 = 500;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetEvents {}

impl Workflow for ForgetEvents {
    const NAME: &'static str = "platform.forget_events";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::transact("forget")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What is forgotten does not come back.
        run.pivot();
        let mut forgotten = 0;
        for round in 0..ROUNDS {
            let gone: u64 = run.transact_for("forget", round, |conn| Box::pin(forget(conn))).await?;
            forgotten += gone;
            if gone == 0 {
                break;
            }
        }
        run.output(&json!({ "forgotten": forgotten })).await
    }
}

async fn forget(conn: &mut PgConnection) -> Result<u64, Fault> {
    let mut gone = 0;
    for project in outbox::outdated(conn, KEPT.as_secs_f64()).await? {
        gone += outbox::forget(conn, project, KEPT.as_secs_f64(), BATCH).await?;
    }
    Ok(gone)
}
