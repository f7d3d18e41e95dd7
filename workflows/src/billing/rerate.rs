//! `billing.rerate`: a price that began in the past is applied to what was rated since. Every window it touches is opened
//! again and rated anew: what it was charged goes back by reversing entries, and nothing that was posted is changed.

use activities::Env;
use chrono::{DateTime, Utc};
use domain::{UsageSource, Window};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::open_windows::{self, OpenWindow};
use uuid::Uuid;

use super::post::post_all;

/// So many lines, in however many windows: what one transaction writes does not grow with how much ran at once.
const BATCH: i64 = 5000;

/// Everything of one unit, from a moment on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RerateUsage {
    pub usage_source: UsageSource,
    pub usage_unit: String,
    pub from: DateTime<Utc>,
}

/// The last window of a batch.
type Last = (Uuid, DateTime<Utc>, DateTime<Utc>);

impl Workflow for RerateUsage {
    const NAME: &'static str = "billing.rerate";
    const PLAN: &'static [PlannedStep] =
        &[PlannedStep::transact("open_windows"), PlannedStep::transact("post_windows")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.pivot();
        let mut last: Option<Last> = None;
        for batch in 0_u32.. {
            let this = self.clone();
            last = run
                .transact_for("open_windows", batch, move |conn| {
                    let this = this.clone();
                    Box::pin(async move { this.open(conn, last).await })
                })
                .await?;
            if last.is_none() {
                break;
            }
        }
        let posted = post_all(run).await?;
        run.output(&json!({
            "windows": posted.windows, "entries": posted.entries, "projects_set_aside": posted.set_aside,
        }))
        .await
    }
}

impl RerateUsage {
    async fn open(&self, conn: &mut PgConnection, last: Option<Last>) -> Result<Option<Last>, Fault> {
        let of = (self.usage_source, self.usage_unit.as_str());
        let after =
            last.map(|(project_id, start, end)| OpenWindow { project_id, window: Window { start, end } });
        let last = open_windows::open_again(conn, of, self.from, after, BATCH).await?;
        Ok(last.map(|open| (open.project_id, open.window.start, open.window.end)))
    }
}
