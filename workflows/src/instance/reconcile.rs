//! `instance.reconcile`: what a node has of an instance is brought to what it should be. The run holds the instance's target, so
//! nothing else acts on it, unless the instance lives on another node; it believes only a report that was taken after it began:
//! what an earlier one shows may have been changed by the run before.

use std::time::Duration;

use activities::Env;
use activities::instance::{self, RemoveStray, RestartWorkload};
use domain::{EventType, InstanceStatus, PolicyKey, StatusReason};
use engine::{Fault, Halt, OnExhausted, PlannedStep, Run, Workflow};
use node_protocol::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instances::{self, Why};
use store::policies::Subject;
use store::{nodes, policies};
use tracing::{Span, warn};
use uuid::Uuid;

use super::deploy::DeployInstance;
use super::retry::again;
use super::switch::release_old;
use super::{Told, debts};
use crate::reconcilers::drift::{Claim, Findings, Wanted, claim, claim_on, compare, workloads};

const ANSWERS_WITHIN: Duration = Duration::from_secs(10 * 60);
/// A report may have been on its way when the run began; the one after it was taken later.
const REPORTS_LATER: i64 = 2;
const FIRST_LOOK: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// A node that is silent for so many looks is the watch's to give up.
const LOOKS: u32 = 12;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReconcileInstance {
    pub instance: Uuid,
    pub node_id: Uuid,
}

impl Workflow for ReconcileInstance {
    const NAME: &'static str = "instance.reconcile";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("note_report"),
        PlannedStep::wait("node_reported"),
        PlannedStep::transact("look"),
        PlannedStep::activity("remove_stray"),
        PlannedStep::wait("stray_removed"),
        PlannedStep::transact("release_strays"),
        PlannedStep::activity("restart_workload"),
        PlannedStep::wait("workload_restarted"),
        PlannedStep::transact("mark_missing"),
        PlannedStep::child(DeployInstance::NAME),
        PlannedStep::transact("collect_debt"),
    ];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn span(&self, env: &Env) -> Span {
        activities::instance::span(env, self.instance).await
    }

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let Some(found) = self.look(run).await? else {
            return run.output(&json!({ "node": "silent" })).await;
        };
        self.remove_strays(run, &found).await?;
        let mut lost = found.missing.then(|| "the workload is gone from its node".to_owned());
        if let Some(serving) = found.stopped {
            lost = self.restart(run, serving).await?;
        }
        if let Some(lost) = lost {
            let (instance, told) = (self.instance, Told::of(run));
            let again: Option<DeployInstance> = run
                .transact("mark_missing", move |conn| {
                    let (lost, told) = (lost.clone(), told.clone());
                    Box::pin(async move { mark_missing(conn, instance, &lost, &told).await })
                })
                .await?;
            if let Some(again) = again {
                // Whatever becomes of it, the instance says so itself.
                let _ = run.try_child(&again).await?;
            }
        }
        self.collect_debt(run).await?;
        run.output(&found).await
    }
}

impl ReconcileInstance {
    /// What a report shows that was taken after this run began; `None` when none came that can be read.
    async fn look(&self, run: &mut Run<Env>) -> Result<Option<Findings>, Halt> {
        let ReconcileInstance { instance, node_id } = *self;
        let seen: i64 =
            run.transact("note_report", move |conn| Box::pin(sequence(conn, instance, node_id))).await?;
        let mut pause = FIRST_LOOK;
        for look in 0..LOOKS {
            let _: Option<Value> = run.wait_until("node_reported", look, pause).await?;
            let after = seen + REPORTS_LATER;
            let found: Option<Findings> = run
                .transact_for("look", look, move |conn| Box::pin(findings(conn, instance, node_id, after)))
                .await?;
            if found.is_some() {
                return Ok(found);
            }
            pause = BETWEEN_LOOKS;
        }
        Ok(None)
    }

    /// Starts what stands still. Where the node cannot, it is lost, and this is why; a silent node is the watch's to give up.
    async fn restart(&self, run: &mut Run<Env>, serving: i64) -> Result<Option<String>, Halt> {
        run.step(RestartWorkload { instance: self.instance, node_id: self.node_id, serving }).await?;
        let trouble = match run.wait_until("workload_restarted", "", ANSWERS_WITHIN).await? {
            Some(Outcome::Succeeded { .. }) | None => return Ok(None),
            Some(Outcome::Failed { message, .. }) => message,
            Some(Outcome::Refused { refusal }) => format!("the node refused the task: {refusal}"),
        };
        Ok(Some(format!("the workload stands still and cannot be started: {trouble}")))
    }

    /// What the strays held is given back only with the node's evidence that they are gone.
    async fn remove_strays(&self, run: &mut Run<Env>, found: &Findings) -> Result<(), Halt> {
        let ReconcileInstance { instance, node_id } = *self;
        let mut gone = !found.strays.is_empty();
        for stray in &found.strays {
            let remove = RemoveStray { instance, node_id, stray: *stray, for_good: found.ended };
            run.step_for(stray, remove).await?;
            let outcome: Option<Outcome> = run.wait_until("stray_removed", stray, ANSWERS_WITHIN).await?;
            gone &= outcome.is_some_and(|outcome| instance::gone(self.instance, &outcome).is_ok());
        }
        if !gone || found.ended {
            return Ok(());
        }
        let told = Told::of(run);
        run.transact("release_strays", move |conn| {
            let told = told.clone();
            Box::pin(async move { release_old(conn, instance, node_id, &told).await })
        })
        .await
    }

    /// Who collects debts passes by what a run acts on. Looks that follow each other closely would keep it from this one for long.
    async fn collect_debt(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let (instance, told) = (self.instance, Told::of(run));
        run.transact("collect_debt", move |conn| {
            let told = told.clone();
            Box::pin(async move { collect_of(conn, instance, &told).await })
        })
        .await
    }
}

async fn sequence(conn: &mut PgConnection, instance: Uuid, node: Uuid) -> Result<i64, Fault> {
    instance::held(conn, instance).await?;
    Ok(nodes::find(conn, node).await?.map_or(0, |node| node.report_sequence))
}

async fn findings(
    conn: &mut PgConnection,
    instance: Uuid,
    node: Uuid,
    after: i64,
) -> Result<Option<Findings>, Fault> {
    let now = instance::held(conn, instance).await?;
    let Some(node) = nodes::find(conn, node).await?.filter(|node| node.report_sequence >= after) else {
        return Ok(None);
    };
    let read =
        workloads(&node).inspect_err(|fault| warn!(node = %node.id, ?fault, "its report is passed over"));
    let Ok(seen) = read else { return Ok(None) };
    let serving = Wanted::of(conn, instance).await?;
    let claim = claim_on(conn, &now, node.id).await?;
    Ok(Some(compare(instance, claim, serving.as_ref(), &seen)))
}

/// What cannot be read stays owed, and is told by whoever collects for all.
async fn collect_of(conn: &mut PgConnection, instance: Uuid, told: &Told) -> Result<(), Fault> {
    match debts::settle(conn, instance, told).await {
        Ok(_) | Err(Fault::NeedsOperator(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// It is not there, or not to be started: somebody took it away behind the platform's back, or the node lost it. Where policy says
/// so it is deployed again at once, as a retry would; otherwise it waits for one, and says so.
async fn mark_missing(
    conn: &mut PgConnection,
    instance: Uuid,
    lost: &str,
    told: &Told,
) -> Result<Option<DeployInstance>, Fault> {
    let now = instance::held(conn, instance).await?;
    let of = Subject { org: Some(now.org_id), project: Some(now.project_id), user: None };
    let relaunch = policies::flag(conn, PolicyKey::RelaunchMissing, of).await?;
    let then = if relaunch { "it is deployed again" } else { "a retry starts it anew" };
    let why = Why { reason: StatusReason::Internal, message: format!("{lost}; {then}") };
    match (claim(&now)?, now.status()?) {
        (Claim::Runs, InstanceStatus::Running) => {
            let (from, to) = (InstanceStatus::Running, InstanceStatus::Failed);
            app_instances::move_to(conn, instance, from, to, Some(&why)).await?;
        }
        // Its node fell silent and came back without it: it has failed already, and nobody else brings it back.
        (Claim::Runs, _) => app_instances::note_reason(conn, instance, &why).await?,
        _ => return Ok(None),
    }
    instance::tell(conn, instance, EventType::InstanceFailed, "reconcile", told.thread()).await?;
    Ok(if relaunch { Some(again(conn, &now).await?) } else { None })
}
