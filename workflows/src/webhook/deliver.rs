//! Sends one webhook everything that is due, round by round, until nothing is or enough was done for one run. While as many
//! are being delivered to as may be at once, it waits, and holds no worker.

use std::time::Duration;

use activities::Env;
use activities::deliver_due::DeliverDue;
use engine::{Halt, OnExhausted, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Enough rounds for one run: its history stays readable, and the next run goes on where it ended.
const ROUNDS: u32 = 20;
/// Whoever found no place comes again after this time and up to as much more, so that not all come at once.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverWebhook {
    pub webhook_id: Uuid,
}

impl Workflow for DeliverWebhook {
    const NAME: &'static str = "webhook.deliver";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("deliver_due"), PlannedStep::wait("place")];
    // What was not sent is still due, and the next run sends it.
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What was sent cannot be taken back.
        run.pivot();
        let mut delivered = 0;
        for round in 0..ROUNDS {
            let sent = run.step_for(round, DeliverDue { webhook_id: self.webhook_id }).await?;
            delivered += sent.delivered;
            if !sent.more {
                break;
            }
            if sent.full {
                // Nobody says that a place is free: the time passes, and it looks again.
                run.wait_until::<Value>("place", round, self.pause()).await?;
            }
        }
        run.output(&json!({ "delivered": delivered })).await
    }
}

impl DeliverWebhook {
    /// The same each time, by a part of the id that differs from webhook to webhook.
    fn pause(&self) -> Duration {
        PAUSE + PAUSE.mul_f64(f64::from(self.webhook_id.as_bytes()[15]) / 256.0)
    }
}
