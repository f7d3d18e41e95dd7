//! `instance.deploy`: see that it may be, place the instance, give it an identity, start its workload on the node, wait
//! until it serves, mark it running.

use std::time::Duration;

use activities::Env;
use activities::instance::{
    self, BeginDeploy, CheckEntitlement, IssuePullIntent, LaunchWorkload, ProbeWorkload, ProvisionIdentity,
    RemoveWorkload, ReservePlacement, ResolveArtifacts, TellTrustAgain,
};
use domain::placement::Strategy;
use domain::{EventType, InstanceStatus, StatusReason};
use engine::{Asker, Fault, Halt, NotAgain, OnExhausted, PlannedStep, Run, Workflow};
use node_protocol::{Launched, Outcome, Output, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::resource_ledger as ledger;
use store::{app_instance_artifacts, app_instance_releases, app_instances, meters, teardowns};
use tracing::Span;
use uuid::Uuid;

use super::retry::{Retry, admitted_again};
use super::{Told, again, answer, holder};

/// A large image takes its time to be pulled.
pub(super) const LAUNCHES_WITHIN: Duration = Duration::from_secs(30 * 60);
/// On top of the grace period that the version declares.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);
/// A node has this long to take away what an earlier try left.
const REMOVES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// So often a node is told who may log in, as long as it answers that it was told of something newer.
const TELLINGS: u32 = 5;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeployInstance {
    pub instance: Uuid,
    /// The instance's generation when this run was started; the node refuses what is older.
    pub generation: i64,
    /// The id of the identity that the instance is given.
    pub account: Uuid,
    /// The id of the permission to pull the image.
    pub pull: Uuid,
    /// The node on which something of an earlier generation may stand.
    pub clears: Option<Uuid>,
    /// Made for a version's own tests: nobody is entitled to it, and its version need not be open to anybody.
    #[serde(default)]
    pub throwaway: bool,
    /// Whether the instance has run before, so that it only gets back what it had: that may be deprecated since, and no
    /// registry is asked.
    #[serde(default)]
    pub returns: bool,
}

impl DeployInstance {
    /// The ids of what the run will make are made here, so that every step may be repeated.
    pub fn new(instance: Uuid, generation: i64) -> DeployInstance {
        let (account, pull) = (Uuid::now_v7(), Uuid::now_v7());
        DeployInstance { instance, generation, account, pull, clears: None, throwaway: false, returns: false }
    }

    /// Of an instance that is yet to be made.
    pub fn throwaway() -> DeployInstance {
        DeployInstance { throwaway: true, ..DeployInstance::new(Uuid::now_v7(), 1) }
    }
}

impl Workflow for DeployInstance {
    const NAME: &'static str = "instance.deploy";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::undoable("begin_deploy"),
        PlannedStep::activity("check_entitlement"),
        PlannedStep::activity("resolve_artifacts"),
        PlannedStep::activity("remove_workload"),
        PlannedStep::wait("workload_removed"),
        PlannedStep::transact("release_earlier"),
        PlannedStep::undoable("reserve_placement"),
        PlannedStep::undoable("provision_identity"),
        PlannedStep::wait("ssh_trust_installed"),
        PlannedStep::undoable("issue_pull_intent"),
        PlannedStep::undoable("launch_workload"),
        PlannedStep::wait("workload_launched"),
        PlannedStep::activity("probe_workload"),
        PlannedStep::wait("workload_healthy"),
        PlannedStep::transact("start_metering"),
        PlannedStep::transact("mark_running"),
    ];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn span(&self, env: &Env) -> Span {
        activities::instance::span(env, self.instance).await
    }

    async fn again(self, conn: &mut PgConnection, _: &Asker) -> Result<Self, NotAgain> {
        let instance = again::held_for::<Retry>(conn, self.instance).await?;
        admitted_again(conn, &instance).await.map_err(again::refused)
    }

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let DeployInstance { instance, generation, account, pull, clears, throwaway, returns } = *self;
        run.step(BeginDeploy { instance }).await?;
        if !throwaway {
            run.step(CheckEntitlement { instance }).await?;
        }
        run.step(ResolveArtifacts { instance, returns }).await?;
        if let Some(node_id) = clears {
            self.clear(run, node_id).await?;
        }
        let strategy = Strategy::SideBySide;
        let placement = run.step(ReservePlacement { instance, strategy }).await?;
        let node_id = placement.node_id;
        if run.step(ProvisionIdentity { instance, account }).await?.is_some() {
            trusted(run, node_id).await?;
        }
        run.step(IssuePullIntent { instance, node_id, pull }).await?;
        run.step(LaunchWorkload { instance, generation, placement, pull, alone: true }).await?;
        let launched = launched(answer(run, "workload_launched", LAUNCHES_WITHIN).await?);
        until_it_serves(run, &launched, ProbeWorkload { instance, generation, node_id }).await?;
        run.pivot();
        let correlation_id = run.correlation_id().to_owned();
        run.transact("start_metering", move |conn| {
            let correlation_id = correlation_id.clone();
            Box::pin(async move { Ok(meters::open(conn, instance, &correlation_id).await?) })
        })
        .await?;
        let (told, deploy) = (Told::of(run), self.clone());
        run.transact("mark_running", move |conn| {
            let (launched, told, deploy) = (launched.clone(), told.clone(), deploy.clone());
            Box::pin(async move { deploy.mark_running(conn, &launched, &told).await })
        })
        .await
    }
}

impl DeployInstance {
    /// What an earlier try left on the node goes first, and what it held with it: a workload is never doubled.
    async fn clear(&self, run: &mut Run<Env>, node_id: Uuid) -> Result<(), Halt> {
        let instance = self.instance;
        run.step(RemoveWorkload::before(instance, self.generation, node_id)).await?;
        let removed = Outcome::Succeeded { output: answer(run, "workload_removed", REMOVES_WITHIN).await? };
        if let Err(trouble) = instance::gone(instance, &removed) {
            return Err(run.fail(&Fault::terminal(StatusReason::Internal.as_str(), trouble)).await);
        }
        let told = Told::of(run);
        run.transact("release_earlier", move |conn| {
            let told = told.clone();
            Box::pin(async move { release_earlier(conn, instance, &told).await })
        })
        .await
    }

    /// The switch: what was the target serves from now on. An instance that is being decommissioned stays that.
    async fn mark_running(
        &self,
        conn: &mut PgConnection,
        launched: &[Launched],
        told: &Told,
    ) -> Result<(), Fault> {
        let instance = self.instance;
        // Versions are locked before instances.
        instance::tell_canary(conn, instance, None, (told.run, told.thread()), false).await?;
        let now = instance::held(conn, instance).await?;
        app_instances::set_endpoints(conn, instance, &endpoints(launched)).await?;
        app_instance_artifacts::promote(conn, instance, Standing::Target, Standing::Serving).await?;
        app_instance_releases::promote(conn, instance, Standing::Target, Standing::Serving).await?;
        instance::end_pull(conn, &now, self.pull, holder(&now, told)).await?;
        if now.status()? != InstanceStatus::Deploying {
            return Ok(());
        }
        let (from, to) = (InstanceStatus::Deploying, InstanceStatus::Running);
        app_instances::move_to(conn, instance, from, to, None).await?;
        let done = json!({
            "kind": "deploy", "status": "succeeded", "version": now.version, "generation": self.generation,
            "workflow_id": told.run,
        });
        app_instances::set_last_operation(conn, instance, &done).await?;
        instance::tell(conn, instance, EventType::InstanceRunning, "deploy", told.thread()).await
    }
}

/// The node has the key. Where it knows of a newer set already, that has the key too, but has perhaps not been written: it is told
/// again.
async fn trusted(run: &mut Run<Env>, node_id: Uuid) -> Result<(), Halt> {
    let mut outcome: Option<Outcome> = run.wait_until("ssh_trust_installed", "", ANSWERS_WITHIN).await?;
    for attempt in 2..=TELLINGS {
        if !matches!(outcome, Some(Outcome::Refused { refusal: Refusal::StaleGeneration })) {
            break;
        }
        run.step_for(attempt, TellTrustAgain { node_id, attempt }).await?;
        outcome = run.wait_until("ssh_trust_installed", attempt, ANSWERS_WITHIN).await?;
    }
    let (reason, message) = match outcome {
        Some(Outcome::Succeeded { .. }) => return Ok(()),
        Some(Outcome::Failed { reason, message }) => (reason, message),
        Some(Outcome::Refused { refusal }) => {
            (StatusReason::TaskRejected, format!("the node refused the task: {refusal}"))
        }
        None => (StatusReason::NodeUnreachable, "the node did not let the key in in time".to_owned()),
    };
    Err(run.fail(&Fault::terminal(reason.as_str(), message)).await)
}

/// Everything that is held was the earlier workload's, and that is gone.
async fn release_earlier(conn: &mut PgConnection, instance: Uuid, told: &Told) -> Result<(), Fault> {
    let now = instance::held(conn, instance).await?;
    ledger::give_back_for_takers(conn, holder(&now, told)).await?;
    // Its ports are anybody's from here on.
    app_instances::set_endpoints(conn, instance, &json!([])).await?;
    teardowns::collect(conn, instance).await?;
    instance::end_identity(conn, &now).await
}

pub(super) fn launched(output: Output) -> Vec<Launched> {
    match output {
        Output::Launched { members } => members,
        _ => Vec::new(),
    }
}

/// A workload that the node saw serving right after its start is not asked again.
pub(super) async fn until_it_serves(
    run: &mut Run<Env>,
    launched: &[Launched],
    probe: ProbeWorkload,
) -> Result<(), Halt> {
    if launched.iter().any(|member| member.serves) {
        return Ok(());
    }
    if let Some(grace) = run.step(probe).await? {
        let within = ANSWERS_WITHIN + Duration::from_secs(u64::from(grace));
        answer(run, "workload_healthy", within).await?;
    }
    Ok(())
}

/// Where the members are reached.
pub(super) fn endpoints(launched: &[Launched]) -> Value {
    let ports = launched.iter().flat_map(|member| &member.ports);
    ports.map(|(name, port)| json!({ "name": name, "port": port })).collect()
}
