//! Every night the engine's promises are checked over all of history. A run that failed is the alarm: its error says
//! which promise is broken, by which run.

use activities::{Env, promises};
use engine::{Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A night that was missed is made up for once.
pub const NIGHTLY: Schedule =
    Schedule { name: "check_promises", cron: "0 0 3 * * *", missed: Missed::One, overlap: Overlap::Skip };

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckPromises {}

impl Workflow for CheckPromises {
    const NAME: &'static str = "platform.check_promises";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("check_promises")];
    // A night on which nobody could look must not stand in the way of the next.
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.step(promises::CheckPromises {}).await?;
        run.output(&json!({ "broken": 0 })).await
    }
}
