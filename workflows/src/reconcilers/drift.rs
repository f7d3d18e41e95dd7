//! What nodes report is held against what should be there. This only looks: whatever differs is given to a run of the
//! instance's own, which looks again before it acts. A container whose instance is not the platform's is nobody's to touch.
//! What cannot be judged, or has no room for a run, is counted and keeps no other from its turn.

use activities::Env;
use domain::manifest::RuntimeProfile;
use domain::{InstanceStatus, NodeStatus, StatusReason, compose};
use engine::{
    Activity, Call, EngineError, Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule,
    Start, StartError, Workflow,
};
use node_protocol::{WorkloadReport, WorkloadState};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::app_instances::AppInstance;
use store::nodes::{self, Node};
use store::{Slice, allocations, app_instance_releases, app_instances, runs};
use tracing::warn;
use uuid::Uuid;

use crate::action::Subject;
use crate::instance::reconcile::ReconcileInstance;

/// A look that was missed is not made up for: the next one sees the same.
pub const MINUTELY: Schedule =
    Schedule { name: "drift", cron: "30 * * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

const PAGE: i64 = 200;

/// How a node differs from what should be there of one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// The workload that should serve stands still.
    pub stopped: Option<i64>,
    /// It is not there at all.
    pub missing: bool,
    /// Workloads that are there and should not be.
    pub strays: Vec<i64>,
    /// Whether the instance has ended or lives elsewhere, so that nothing of it should be there.
    pub ended: bool,
}

impl Findings {
    pub fn is_drift(&self) -> bool {
        self.missing || self.stopped.is_some() || !self.strays.is_empty()
    }
}

/// What an instance is to its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It runs there, or did until the node fell silent.
    Runs,
    Ended,
    /// It runs on another node, which alone says how it is: whatever is here of it is nothing but a stray.
    Elsewhere,
    /// It has a run of its own that knows better, or waits for a person.
    Other,
}

impl Claim {
    pub fn of(status: InstanceStatus, reason: Option<StatusReason>) -> Claim {
        match (status, reason) {
            (InstanceStatus::Running, _) | (InstanceStatus::Failed, Some(StatusReason::NodeUnreachable)) => {
                Claim::Runs
            }
            (InstanceStatus::Decommissioned, _) => Claim::Ended,
            _ => Claim::Other,
        }
    }
}

/// What should be there of an instance that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub generation: i64,
    pub members: Vec<String>,
}

impl Wanted {
    /// What serves; none where nothing does.
    pub async fn of(conn: &mut PgConnection, instance: Uuid) -> Result<Option<Wanted>, Fault> {
        let Some(serving) = app_instance_releases::find(conn, instance, Standing::Serving).await? else {
            return Ok(None);
        };
        let profile: RuntimeProfile = serde_json::from_value(serving.profile)
            .map_err(|error| Fault::needs_operator("unreadable", error.to_string()))?;
        Ok(Some(Wanted { generation: serving.generation, members: compose::members(&profile) }))
    }
}

/// Only what rests is judged.
pub fn compare(instance: Uuid, claim: Claim, serving: Option<&Wanted>, seen: &[WorkloadReport]) -> Findings {
    let own = || seen.iter().filter(move |workload| workload.instance_id == instance);
    let strays = |wanted: Option<i64>| {
        let mut strays: Vec<i64> =
            own().map(|one| one.generation).filter(|one| Some(*one) != wanted).collect();
        strays.sort_unstable();
        strays.dedup();
        strays
    };
    match (claim, serving) {
        (Claim::Runs, Some(wanted)) => {
            let generation = wanted.generation;
            let there = || own().filter(move |workload| workload.generation == generation);
            let missing =
                wanted.members.iter().any(|member| there().all(|workload| workload.member != *member));
            // What its engine starts again and again needs no other to start it.
            let stands = |state| matches!(state, WorkloadState::Created | WorkloadState::Exited);
            let stands = there().any(|workload| stands(workload.state));
            let stopped = (stands && !missing).then_some(generation);
            Findings { stopped, missing, strays: strays(Some(generation)), ended: false }
        }
        (Claim::Ended | Claim::Elsewhere, _) => {
            Findings { strays: strays(None), ended: true, ..Findings::default() }
        }
        _ => Findings::default(),
    }
}

pub fn claim(instance: &AppInstance) -> sqlx::Result<Claim> {
    Ok(Claim::of(instance.status()?, instance.reason()?))
}

/// What it is to this very node.
pub async fn claim_on(conn: &mut PgConnection, instance: &AppInstance, node: Uuid) -> sqlx::Result<Claim> {
    let claim = claim(instance)?;
    if claim != Claim::Runs {
        return Ok(claim);
    }
    let allocation = match instance.allocation_id {
        Some(allocation) => allocations::find(conn, allocation).await?,
        None => None,
    };
    let is_here = allocation.is_some_and(|allocation| allocation.node_id == node);
    Ok(if is_here { Claim::Runs } else { Claim::Elsewhere })
}

/// What a node reported last. One that a newer release kept may be unreadable to this one: it then says nothing of what is there,
/// least of all that nothing is.
pub fn workloads(node: &Node) -> Result<Vec<WorkloadReport>, Fault> {
    let Some(report) = &node.report else { return Ok(Vec::new()) };
    Vec::deserialize(&report["workloads"])
        .map_err(|error| Fault::needs_operator("unreadable", format!("the report of {}: {error}", node.name)))
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchDrift {}

/// What one look came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Looked {
    /// Those that differ and have a run now.
    pub instances: Vec<Uuid>,
    /// Instances of which it cannot be read what should be there, and nodes of which it cannot be read what is.
    pub unreadable: usize,
    /// These differ, and their project has too many runs already.
    pub no_room: usize,
}

impl Workflow for WatchDrift {
    const NAME: &'static str = "platform.watch_drift";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("reconcile_what_differs")];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let looked = run.step(ReconcileWhatDiffers {}).await?;
        run.output(&looked).await
    }
}

/// Starts a run for every instance that differs and that nothing else acts on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReconcileWhatDiffers {}

impl Activity for ReconcileWhatDiffers {
    const NAME: &'static str = "reconcile_what_differs";
    type Env = Env;
    type Output = Looked;

    async fn run(&self, env: &Env, call: &Call) -> Result<Looked, Fault> {
        let (mut after, mut looked) = (None, Looked::default());
        loop {
            let mut tx = env.pool().begin().await?;
            let page = nodes::list(&mut tx, Slice { after, limit: PAGE }).await?;
            after = page.last().map(|node| node.id);
            let mut found = Vec::new();
            for node in &page {
                if matches!(node.status()?, NodeStatus::Active | NodeStatus::Drained) {
                    let all = differing(&mut tx, node, &mut looked).await?;
                    found.extend(all.into_iter().map(|(instance, claim)| (instance, claim, node.id)));
                }
            }
            drop(tx);
            for (instance, claim, node) in found {
                reconcile(env, (instance, claim), node, call, &mut looked).await?;
            }
            if after.is_none() {
                env.engine().wake();
                return Ok(looked);
            }
        }
    }
}

async fn differing(
    conn: &mut PgConnection,
    node: &Node,
    looked: &mut Looked,
) -> Result<Vec<(Uuid, Claim)>, Fault> {
    let seen = match workloads(node) {
        Ok(seen) => seen,
        Err(fault) => {
            warn!(node = %node.id, ?fault, "what a node reports cannot be read, so nothing there is judged");
            looked.unreadable += 1;
            return Ok(Vec::new());
        }
    };
    let mut about = app_instances::expected_on(conn, node.id).await?;
    about.extend(seen.iter().map(|workload| workload.instance_id));
    about.sort_unstable();
    about.dedup();
    let mut differing = Vec::new();
    for instance in app_instances::of(conn, &about).await? {
        match differs(conn, &instance, node, &seen).await {
            Ok(Some(claim)) => differing.push((instance.id, claim)),
            Ok(None) => {}
            // The database's trouble is everybody's; what one instance says is its own.
            Err(fault @ Fault::Retry(_)) => return Err(fault),
            Err(fault) => {
                warn!(instance = %instance.id, ?fault, "what should be there cannot be read");
                looked.unreadable += 1;
            }
        }
    }
    Ok(differing)
}

/// What it is to the node, where it differs there. A report from before a run changed the instance tells nothing of it, and a run
/// that looks again would be in the way of whoever acts next.
async fn differs(
    conn: &mut PgConnection,
    instance: &AppInstance,
    node: &Node,
    seen: &[WorkloadReport],
) -> Result<Option<Claim>, Fault> {
    claim(instance).map_err(|error| Fault::needs_operator("unreadable", error.to_string()))?;
    let claim = claim_on(conn, instance, node.id).await?;
    let serving = Wanted::of(conn, instance.id).await?;
    if !compare(instance.id, claim, serving.as_ref(), seen).is_drift() {
        return Ok(None);
    }
    let outdated = runs::acted_on_since(conn, &instance.target(), node.last_seen_at).await?;
    Ok((!outdated).then_some(claim))
}

/// Where another run acts on the instance none is started: the next look sees what that leaves. A node on which it does not live
/// keeps nobody from acting on it.
async fn reconcile(
    env: &Env,
    (id, claim): (Uuid, Claim),
    node_id: Uuid,
    call: &Call,
    looked: &mut Looked,
) -> Result<(), Fault> {
    let mut tx = env.pool().begin().await?;
    let Some(instance) = app_instances::find(&mut tx, id).await? else { return Ok(()) };
    let target = match claim {
        Claim::Elsewhere => format!("{}@{node_id}", instance.target()),
        _ => instance.target(),
    };
    let options = Start {
        project_id: instance.project_id,
        org_id: Some(instance.org_id),
        correlation_id: call.correlation_id.to_string(),
        target: Some(target),
        ..Start::default()
    };
    match env.engine().start(&mut tx, &ReconcileInstance { instance: id, node_id }, options).await {
        Ok(mut started) => {
            tx.commit().await?;
            started.begin();
            looked.instances.push(id);
            Ok(())
        }
        Err(StartError::TargetBusy(_)) => Ok(()),
        Err(StartError::Backlog) => {
            warn!(instance = %id, project = %instance.project_id, "a project has no room to put an instance right");
            looked.no_room += 1;
            Ok(())
        }
        Err(StartError::Engine(EngineError::Database(error))) => Err(error.into()),
        Err(other) => Err(Fault::retry("not_started", other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_protocol::{Health, Usage};

    const INSTANCE: Uuid = Uuid::from_u128(1);

    fn seen(instance: Uuid, generation: i64, state: WorkloadState) -> WorkloadReport {
        let (member, health, usage) = ("main".to_owned(), Health::Unknown, Usage::default());
        WorkloadReport { instance_id: instance, member, generation, state, health, usage }
    }

    fn wanted(generation: i64) -> Wanted {
        Wanted { generation, members: vec!["main".to_owned()] }
    }

    #[test]
    fn a_stack_without_one_of_its_members_is_not_there() {
        let wanted = Wanted { generation: 3, members: vec!["main".to_owned(), "proxy".to_owned()] };
        let all = [seen(INSTANCE, 3, WorkloadState::Running)];
        assert!(compare(INSTANCE, Claim::Runs, Some(&wanted), &all).missing);
    }

    #[test]
    fn what_serves_and_nothing_else_is_no_drift() {
        let all =
            [seen(INSTANCE, 3, WorkloadState::Running), seen(Uuid::from_u128(2), 1, WorkloadState::Exited)];
        assert!(!compare(INSTANCE, Claim::Runs, Some(&wanted(3)), &all).is_drift());
    }

    #[test]
    fn what_its_engine_starts_again_and_again_is_there_and_does_not_stand_still() {
        let all = [seen(INSTANCE, 3, WorkloadState::Restarting)];
        assert!(!compare(INSTANCE, Claim::Runs, Some(&wanted(3)), &all).is_drift());
    }

    #[test]
    fn what_stands_still_is_missing_or_strays_is_told_apart() {
        let all = [seen(INSTANCE, 2, WorkloadState::Running), seen(INSTANCE, 3, WorkloadState::Exited)];
        let found = compare(INSTANCE, Claim::Runs, Some(&wanted(3)), &all);
        assert_eq!((found.stopped, found.missing, found.strays), (Some(3), false, vec![2]));
        let found = compare(INSTANCE, Claim::Runs, Some(&wanted(4)), &all);
        assert_eq!((found.stopped, found.missing, found.strays), (None, true, vec![2, 3]));
        let ended = compare(INSTANCE, Claim::Ended, None, &all);
        let elsewhere = compare(INSTANCE, Claim::Elsewhere, Some(&wanted(3)), &all);
        assert_eq!(elsewhere, ended, "how it is, another node says");
        assert_eq!((ended.missing, ended.stopped, ended.strays), (false, None, vec![2, 3]));
    }

    #[test]
    fn an_instance_that_changes_is_left_to_its_run() {
        for status in [InstanceStatus::Deploying, InstanceStatus::Upgrading, InstanceStatus::Decommissioning]
        {
            let all = [seen(INSTANCE, 9, WorkloadState::Exited)];
            let claim = Claim::of(status, None);
            assert!(!compare(INSTANCE, claim, Some(&wanted(3)), &all).is_drift(), "{status}");
        }
        let failed = |reason| Claim::of(InstanceStatus::Failed, Some(reason));
        assert_eq!(failed(StatusReason::ImagePullFailed), Claim::Other, "a person's to retry");
        assert_eq!(failed(StatusReason::NodeUnreachable), Claim::Runs, "the platform's to bring back");
    }
}
