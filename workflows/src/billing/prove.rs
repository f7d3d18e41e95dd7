//! `billing.prove`: every night each project's chain is read from its beginning and held against the kept balance, and every
//! series against what it was charged. A run that failed is the alarm: its error says whose ledgers do not hold.

use std::time::Duration;

use activities::Env;
use engine::{
    Activity, Call, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow,
};
use serde::{Deserialize, Serialize};
use store::billing_ledger::{self, Unproven};
use tracing::warn;

pub const NIGHTLY: Schedule =
    Schedule { name: "ledger_proof", cron: "0 30 3 * * *", missed: Missed::One, overlap: Overlap::Skip };

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProveLedgers {}

impl Workflow for ProveLedgers {
    const NAME: &'static str = "billing.prove";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("prove_ledgers")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let proven = run.step(Prove {}).await?;
        run.output(&proven).await
    }
}

/// How many ledgers hold, and how many could not be read to their end: those are not said to be broken.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Proven {
    pub ledgers: usize,
    pub not_read: usize,
}

/// It only reads, so it may be repeated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prove {}

impl Activity for Prove {
    const NAME: &'static str = "prove_ledgers";
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Env = Env;
    type Output = Proven;

    async fn run(&self, env: &Env, _: &Call) -> Result<Proven, Fault> {
        let (mut proven, mut after, mut broken) = (Proven::default(), None, Vec::new());
        loop {
            let mut tx = env.pool().begin().await?;
            let projects = billing_ledger::projects(&mut tx, after, 100).await?;
            tx.rollback().await?;
            for project in &projects {
                // One moment for each, so that nobody posts between two looks at the same ledger.
                let mut tx = env.pool().snapshot().await?;
                match billing_ledger::prove(&mut tx, *project).await {
                    Ok(_) => proven.ledgers += 1,
                    Err(Unproven::Database(error)) => {
                        warn!(%project, %error, "a ledger could not be read, so it is not proven");
                        proven.not_read += 1;
                    }
                    Err(unproven) => broken.push(unproven.to_string()),
                }
                // Where the connection is gone, so is the transaction.
                let _ = tx.rollback().await;
            }
            after = projects.last().copied();
            if after.is_none() {
                break;
            }
        }
        if broken.is_empty() { Ok(proven) } else { Err(Fault::terminal("ledger_broken", told(&broken))) }
    }
}

/// Every ledger that does not hold is looked at; so many are named.
fn told(broken: &[String]) -> String {
    const NAMED: usize = 20;
    let named = broken.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match broken.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}
