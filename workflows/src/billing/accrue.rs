//! Allocations cost while they are held: every minute each is counted up to now, or to its release. A minute that was
//! missed is made up for, because every meter goes on from where it stopped.

use activities::Env;
use engine::{Halt, Missed, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::meters;
use uuid::Uuid;

pub const MINUTELY: Schedule =
    Schedule { name: "accrual", cron: "0 * * * * *", missed: Missed::One, overlap: Overlap::Skip };

/// So many allocations in one transaction.
const BATCH: i64 = 100;
/// What is further behind than these make up for, the next runs go on with.
const MOST_BATCHES: u32 = 2000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AccrueAllocations {}

impl Workflow for AccrueAllocations {
    const NAME: &'static str = "billing.accrue";
    const PLAN: &'static [PlannedStep] =
        &[PlannedStep::transact("open_meters"), PlannedStep::transact("count_allocations")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What was counted stays: whatever fails then waits for a person, and nothing is lost meanwhile.
        run.pivot();
        let opened: u64 = run
            .transact("open_meters", |conn| {
                Box::pin(async move { Ok(meters::open_allocations(conn).await?) })
            })
            .await?;
        let mut batches = 0_u32;
        let mut after: Option<Uuid> = None;
        while batches < MOST_BATCHES {
            after = run
                .transact_for("count_allocations", batches, move |conn| {
                    Box::pin(async move { Ok(meters::accrue(conn, after, BATCH).await?) })
                })
                .await?;
            if after.is_none() {
                break;
            }
            batches += 1;
        }
        run.output(&json!({ "meters_opened": opened, "batches": batches })).await
    }
}
