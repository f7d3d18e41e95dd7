//! Sends one webhook everything that is due, round by round, until nothing is or enough was done for one run.

use activities::Env;
use activities::deliver_due::DeliverDue;
use engine::{Halt, OnExhausted, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

/// Enough rounds for one run: its history stays readable, and the next run goes on where it ended.
const ROUNDS: u32 = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverWebhook {
    pub webhook_id: Uuid,
}

impl Workflow for DeliverWebhook {
    const NAME: &'static str = "webhook.deliver";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("deliver_due")];
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
        }
        run.output(&json!({ "delivered": delivered })).await
    }
}
