//! What was kept for a while and is not needed any more goes every hour: first answers to idempotency keys, sessions that
//! have ended, deliveries whose events are no longer kept, questions to nodes whose asker died, and the history of runs. Whoever
//! writes them takes a few of the old along; this takes what is left once nobody writes, and tells how much that was.

use std::time::Duration;

use activities::Env;
use engine::{
    Activity, Call, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow,
};
use node_protocol::Task;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::{console_sessions, idempotency, node_tasks, webhook_deliveries};

/// An hour that was missed is made up for by the next.
pub const HOURLY: Schedule =
    Schedule { name: "clean_up", cron: "0 50 * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// As long as events are: without its event nothing can be sent again.
const DELIVERIES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// The most that one transaction deletes of one table, and how many of them one run has.
const BATCH: i64 = 1000;
const ROUNDS: u32 = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CleanUp {}

/// How much went.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Gone {
    answers: u64,
    sessions: u64,
    deliveries: u64,
    /// A run that began under an earlier release counted none.
    #[serde(default)]
    questions: u64,
}

impl Gone {
    fn is_nothing(self) -> bool {
        self.answers + self.sessions + self.deliveries + self.questions == 0
    }
}

impl Workflow for CleanUp {
    const NAME: &'static str = "platform.clean_up";
    const PLAN: &'static [PlannedStep] =
        &[PlannedStep::transact("forget_outdated"), PlannedStep::activity("clear_history")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        // What is gone does not come back.
        run.pivot();
        let mut all = Gone::default();
        for round in 0..ROUNDS {
            let gone: Gone =
                run.transact_for("forget_outdated", round, |conn| Box::pin(forget_outdated(conn))).await?;
            all.answers += gone.answers;
            all.sessions += gone.sessions;
            all.deliveries += gone.deliveries;
            all.questions += gone.questions;
            if gone.is_nothing() {
                break;
            }
        }
        let runs = run.step(ClearHistory {}).await?;
        let Gone { answers, sessions, deliveries, questions } = all;
        run.output(&json!({
            "idempotency_answers": answers, "console_sessions": sessions, "webhook_deliveries": deliveries,
            "node_questions": questions, "runs": runs,
        }))
        .await
    }
}

async fn forget_outdated(conn: &mut PgConnection) -> Result<Gone, Fault> {
    let questions = Task::KINDS.into_iter().filter(|kind| Task::only_looks(kind));
    let questions: Vec<String> = questions.map(str::to_owned).collect();
    Ok(Gone {
        answers: idempotency::forget_old(conn, BATCH).await?,
        sessions: console_sessions::forget_expired(conn, BATCH).await?,
        deliveries: webhook_deliveries::forget(conn, DELIVERIES_KEPT.as_secs_f64(), BATCH).await?,
        questions: node_tasks::forget_abandoned(conn, &questions, BATCH).await?,
    })
}

/// Ended runs with their journals, for as long as the settings keep them. Doing it again finds nothing to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClearHistory {}

impl Activity for ClearHistory {
    const NAME: &'static str = "clear_history";
    const TIMEOUT: Duration = Duration::from_secs(600);
    type Env = Env;
    type Output = usize;

    async fn run(&self, env: &Env, _: &Call) -> Result<usize, Fault> {
        Ok(env.engine().clear_history().await?)
    }
}
