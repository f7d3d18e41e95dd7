//! Every night, a signer of tasks that has grown old hands over to a new one, and one that handed over long enough ago is believed
//! no more. Nodes learn of it with their next report, by the word of the signer that they believe.

use std::time::Duration;

use activities::Env;
use activities::rotate_signer::{RotateSigner, Rotated};
use engine::{Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A night that was missed is made up for by the next.
pub const NIGHTLY: Schedule =
    Schedule { name: "rotate_signers", cron: "0 40 2 * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// A quarter of a year.
const SIGNS_FOR: Duration = Duration::from_secs(90 * 24 * 3600);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RotateSigners {
    /// A signer of this age hands over.
    pub signs_for_seconds: u64,
}

impl RotateSigners {
    pub const fn usual() -> RotateSigners {
        RotateSigners { signs_for_seconds: SIGNS_FOR.as_secs() }
    }
}

impl Workflow for RotateSigners {
    const NAME: &'static str = "platform.rotate_signers";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("rotate_signer")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What was handed over is not taken back.
        run.pivot();
        let Rotated { handed_over, retired } =
            run.step(RotateSigner { signs_for_seconds: self.signs_for_seconds }).await?;
        run.output(&json!({ "handed_over": handed_over, "retired": retired })).await
    }
}
