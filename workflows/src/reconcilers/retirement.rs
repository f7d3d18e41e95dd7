//! Every hour, what should have been retired by now is looked for. Usually a run waits for the last use to end; where none
//! is left that does, another is started from what was asked for. What somebody cancelled is not to be retired any more.

use activities::Env;
use domain::artifact::Lifecycle;
use domain::version_status::VersionStatus;
use engine::inspect::{RunFilter, runs};
use engine::{
    Activity, Call, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, RunState, Schedule, Start,
    Workflow,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use store::retirements::{self, Overdue};
use store::{app_artifacts, app_versions};
use tracing::warn;
use uuid::Uuid;

use crate::action::Subject as _;
use crate::artifact::Withdrawal;
use crate::version::{Retirement, When};

/// An hour that was missed is made up for by the next.
pub const HOURLY: Schedule =
    Schedule { name: "retirement", cron: "0 20 * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// A run that is about to go on after its grace period is not overdue.
const SLACK_SECONDS: f64 = 60.0;
const BATCH: i64 = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RetireOverdue {}

/// What one look found.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Found {
    /// Their runs wait for the last use to end, or for a person.
    pub waiting: usize,
    /// No run was left.
    pub restarted: usize,
    pub not_restarted: usize,
    /// Retired already, cancelled or gone.
    pub settled: usize,
}

impl Workflow for RetireOverdue {
    const NAME: &'static str = "platform.retire_overdue";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("restart_overdue")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let found = run.step(RestartOverdue {}).await?;
        run.output(&found).await
    }
}

/// Doing it again finds the runs that were started. Each is one transaction; one that fails keeps no other from its turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestartOverdue {}

impl Activity for RestartOverdue {
    const NAME: &'static str = "restart_overdue";
    type Env = Env;
    type Output = Found;

    async fn run(&self, env: &Env, call: &Call) -> Result<Found, Fault> {
        let (mut found, mut last) = (Found::default(), None::<Overdue>);
        loop {
            let mut tx = env.pool().begin().await?;
            let after = last.as_ref().map(|one| (one.kind.as_str(), one.subject_id));
            let batch = retirements::overdue(&mut tx, SLACK_SECONDS, after, BATCH).await?;
            tx.rollback().await?;
            for one in &batch {
                match settle(env, call, one).await {
                    Ok(count) => *count(&mut found) += 1,
                    Err(fault) => {
                        warn!(kind = one.kind, subject = %one.subject_id, ?fault, "a retirement could not go on");
                        found.not_restarted += 1;
                    }
                }
            }
            last = batch.into_iter().next_back();
            if last.is_none() {
                return Ok(found);
            }
        }
    }
}

/// Which number one of them adds to.
type Count = fn(&mut Found) -> &mut usize;

async fn settle(env: &Env, call: &Call, one: &Overdue) -> Result<Count, Fault> {
    let mut tx = env.pool().begin().await?;
    let count = match one.kind.as_str() {
        Withdrawal::NAME => artifact(env, call, &mut tx, one).await?,
        _ => version(env, call, &mut tx, one).await?,
    };
    tx.commit().await?;
    env.engine().wake();
    Ok(count)
}

async fn artifact(env: &Env, call: &Call, conn: &mut PgConnection, one: &Overdue) -> Result<Count, Fault> {
    let found = app_artifacts::find_locked(conn, one.subject_id).await?;
    let Some(artifact) = found.filter(|it| matches!(it.lifecycle(), Ok(Lifecycle::Deprecated))) else {
        return forget(conn, one).await;
    };
    let asked: Withdrawal = read(&one.input)?;
    // Its time is over, and whoever wanted it at once has been waiting: it ends when nothing uses it.
    let again = Withdrawal { grace_seconds: 0, when: When::Unused, ..asked };
    begin(env, call, conn, one, &again, artifact.target(), artifact.owner()).await
}

async fn version(env: &Env, call: &Call, conn: &mut PgConnection, one: &Overdue) -> Result<Count, Fault> {
    let found = app_versions::lock(conn, one.subject_id).await?;
    let Some(version) = found.filter(|it| it.status != VersionStatus::Retired) else {
        return forget(conn, one).await;
    };
    let asked: Retirement = read(&one.input)?;
    let again = Retirement { grace_seconds: 0, when: When::Unused, ..asked };
    let (target, owner) = (version.target(), version.owner());
    begin(env, call, conn, one, &again, target, owner).await
}

/// Starts it once more, unless a run does it or somebody has cancelled the last.
async fn begin<W: Workflow>(
    env: &Env,
    call: &Call,
    conn: &mut PgConnection,
    one: &Overdue,
    again: &W,
    target: String,
    (org_id, project_id): (Uuid, Uuid),
) -> Result<Count, Fault> {
    let kind = Some(one.kind.clone());
    let filter = RunFilter { kind, target: Some(target.clone()), limit: 1, ..RunFilter::default() };
    match runs(conn, &filter).await?.first().map(|run| run.state) {
        Some(RunState::Cancelled) => return forget(conn, one).await,
        Some(state) if !state.is_terminal() => return Ok(|found| &mut found.waiting),
        _ => {}
    }
    let options = Start {
        project_id,
        org_id: Some(org_id),
        correlation_id: call.correlation_id.to_string(),
        traceparent: call.traceparent.as_deref().map(str::to_owned),
        target: Some(target),
        ..Start::default()
    };
    env.engine()
        .start(conn, again, options)
        .await
        .map_err(|error| Fault::retry("not_started", error.to_string()))?;
    Ok(|found| &mut found.restarted)
}

async fn forget(conn: &mut PgConnection, one: &Overdue) -> Result<Count, Fault> {
    retirements::forget(conn, &one.kind, one.subject_id).await?;
    Ok(|found| &mut found.settled)
}

fn read<T: serde::de::DeserializeOwned>(input: &Value) -> Result<T, Fault> {
    serde_json::from_value(input.clone())
        .map_err(|error| Fault::terminal("unreadable_input", error.to_string()))
}
