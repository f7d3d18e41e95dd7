//! Another version for an instance that serves: the new workload is launched beside the old one, and takes over only once it
//! is healthy; whatever goes wrong before leaves the old one as it was. Where both do not fit, the old one is stopped first
//! and comes back if the new one fails, which was said beforehand.
//!
//! `instance.upgrade` and `instance.rollback` are this in two directions.

use std::time::Duration;

use activities::Env;
use activities::instance::{
    BeginChange, IssuePullIntent, LaunchWorkload, ProbeWorkload, RemoveWorkload, ReservePlacement,
    ResolveArtifacts, ResolveTarget, StopWorkload, Way,
};
use domain::placement::Strategy;
use engine::{Halt, PlannedStep, Run};
use node_protocol::{Launched, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::debts::owe_old;
use super::deploy::{LAUNCHES_WITHIN, launched, until_it_serves};
use super::switch::{release_old, switch, unchanged};
use super::{Told, answer};

/// A node that does not take the old workload away in this time owes it from then on.
const REMOVES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// A workload that is asked to stop may take its time.
const STOPS_WITHIN: Duration = Duration::from_secs(120);

pub(super) const PLAN: &[PlannedStep] = &[
    PlannedStep::undoable("begin_change"),
    PlannedStep::undoable("resolve_target"),
    PlannedStep::transact("mark_unchanged"),
    PlannedStep::activity("resolve_artifacts"),
    PlannedStep::undoable("reserve_placement"),
    PlannedStep::undoable("issue_pull_intent"),
    PlannedStep::undoable("stop_workload"),
    PlannedStep::wait("workload_stopped"),
    PlannedStep::undoable("launch_workload"),
    PlannedStep::wait("workload_launched"),
    PlannedStep::activity("probe_workload"),
    PlannedStep::wait("workload_healthy"),
    PlannedStep::transact("switch_endpoint"),
    PlannedStep::activity("remove_workload"),
    PlannedStep::wait("workload_removed"),
    PlannedStep::transact("release_old"),
];

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Shift {
    pub instance: Uuid,
    /// The instance's generation when this run was started; the new workload has it.
    pub generation: i64,
    pub way: Way,
    pub version: String,
    pub artifact_id: Option<Uuid>,
    /// How the new version takes the old one's place; told when the change was asked for.
    pub strategy: Strategy,
    /// The id of the permission to pull the image.
    pub pull: Uuid,
}

impl Shift {
    pub(super) async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let Shift { instance, generation, way, strategy, pull, .. } = *self;
        run.step(BeginChange { instance, way, version: self.version.clone() }).await?;
        let target = run.step(self.target()).await?;
        if target.is_nothing {
            return self.nothing(run).await;
        }
        run.step(ResolveArtifacts { instance, returns: way == Way::Rollback }).await?;
        let placement = run.step(ReservePlacement { instance, strategy }).await?;
        let node_id = placement.node_id;
        run.step(IssuePullIntent { instance, node_id, pull }).await?;
        if strategy == Strategy::StopThenStart {
            let old_generation = target.old_generation;
            run.step(StopWorkload { instance, generation, old_generation, node_id }).await?;
            answer(run, "workload_stopped", STOPS_WITHIN).await?;
        }
        run.step(LaunchWorkload { instance, generation, placement, pull, alone: false }).await?;
        let launched = launched(answer(run, "workload_launched", LAUNCHES_WITHIN).await?);
        until_it_serves(run, &launched, ProbeWorkload { instance, generation, node_id }).await?;
        run.pivot();
        self.switch(run, launched).await?;
        self.remove_old(run, node_id).await?;
        run.output(&json!({ "version": self.version, "strategy": strategy })).await
    }

    fn target(&self) -> ResolveTarget {
        ResolveTarget {
            instance: self.instance,
            way: self.way,
            version: self.version.clone(),
            artifact_id: self.artifact_id,
            strategy: self.strategy,
        }
    }

    /// The same version and digest serve already: the run changes nothing and says so.
    async fn nothing(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let (told, shift) = (Told::of(run), self.clone());
        run.pivot();
        run.transact("mark_unchanged", move |conn| {
            let (told, shift) = (told.clone(), shift.clone());
            Box::pin(async move { unchanged(conn, &shift, &told).await })
        })
        .await?;
        run.output(&json!({ "version": self.version, "changes_nothing": true })).await
    }

    async fn switch(&self, run: &mut Run<Env>, launched: Vec<Launched>) -> Result<(), Halt> {
        let (told, shift) = (Told::of(run), self.clone());
        run.transact("switch_endpoint", move |conn| {
            let (told, shift, launched) = (told.clone(), shift.clone(), launched.clone());
            Box::pin(async move { switch(conn, &shift, &launched, &told).await })
        })
        .await
    }

    /// What the old workload held is given back only with the node's evidence that it is gone.
    async fn remove_old(&self, run: &mut Run<Env>, node_id: Uuid) -> Result<(), Halt> {
        let Shift { instance, generation, .. } = *self;
        run.step(RemoveWorkload::before(instance, generation, node_id)).await?;
        let outcome = run.wait_until("workload_removed", "", REMOVES_WITHIN).await?;
        let gone =
            outcome.is_some_and(|outcome: Outcome| activities::instance::gone(instance, &outcome).is_ok());
        let told = Told::of(run);
        run.transact("release_old", move |conn| {
            let told = told.clone();
            Box::pin(async move {
                if gone {
                    release_old(conn, instance, node_id, &told).await
                } else {
                    owe_old(conn, instance, node_id, &told).await
                }
            })
        })
        .await
    }
}
