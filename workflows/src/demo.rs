//! A tour of what a run can look like: a reservation that can be undone, a step that is retried, a pause by the
//! clock, a wait for a person's word, a transaction. `gpuaas dev` starts a few of them on a new data directory.

use std::time::Duration;

use activities::Env;
use activities::demo::{Assemble, FetchParts, ReserveDesk};
use engine::{Halt, OnExhausted, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tour {
    pub thing: String,
    /// How often the parts store is busy first.
    pub busy_tries: i32,
    /// How long to wait for the signal `go_ahead`; silence means yes.
    pub wait_seconds: u64,
    /// Whether the parts fit in the end; if not, the tour unwinds.
    pub fits: bool,
}

impl Workflow for Tour {
    const NAME: &'static str = "demo.tour";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::undoable("reserve_desk"),
        PlannedStep::activity("fetch_parts"),
        PlannedStep::sleep("let_the_glue_dry"),
        PlannedStep::wait("go_ahead"),
        PlannedStep::activity("assemble"),
        PlannedStep::transact("stamp"),
    ];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.step(ReserveDesk { thing: self.thing.clone() }).await?;
        let parts = run.step(FetchParts { busy_tries: self.busy_tries }).await?;
        run.sleep("let_the_glue_dry", Duration::from_secs(2)).await?;
        let _said: Option<Value> =
            run.wait_until("go_ahead", "", Duration::from_secs(self.wait_seconds)).await?;
        run.step(Assemble { parts, fits: self.fits }).await?;
        run.pivot();
        let stamped: String = run.transact("stamp", |conn| Box::pin(stamp(conn))).await?;
        run.output(&stamped).await
    }
}

/// The database's own time, as an effect that needs no table.
async fn stamp(conn: &mut sqlx::PgConnection) -> Result<String, engine::Fault> {
    let now = sqlx::query_scalar!(r#"select engine.now() as "now!""#).fetch_one(conn).await?;
    Ok(now.to_rfc3339())
}
