//! `instance.deploy`: place the instance, start its workload on the node, wait until it serves, mark it running.

use std::time::Duration;

use activities::Env;
use activities::instance::{self, BeginDeploy, LaunchWorkload, ProbeWorkload, ReservePlacement};
use domain::{EventType, InstanceStatus};
use engine::{Fault, Halt, OnExhausted, PlannedStep, Run, Workflow};
use node_protocol::{Launched, Output};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::{app_instance_artifacts, app_instance_releases, app_instances};
use uuid::Uuid;

use super::answer;

/// A large image takes its time to be pulled.
const LAUNCHES_WITHIN: Duration = Duration::from_secs(30 * 60);
/// On top of the grace period that the version declares.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeployInstance {
    pub instance: Uuid,
    /// The instance's generation when this run was started; the node refuses what is older.
    pub generation: i64,
}

impl Workflow for DeployInstance {
    const NAME: &'static str = "instance.deploy";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::undoable("begin_deploy"),
        PlannedStep::undoable("reserve_placement"),
        PlannedStep::undoable("launch_workload"),
        PlannedStep::wait("workload_launched"),
        PlannedStep::activity("probe_workload"),
        PlannedStep::wait("workload_healthy"),
        PlannedStep::transact("mark_running"),
    ];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let DeployInstance { instance, generation } = *self;
        run.step(BeginDeploy { instance }).await?;
        let placement = run.step(ReservePlacement { instance }).await?;
        let node_id = placement.node_id;
        run.step(LaunchWorkload { instance, generation, placement, alone: true }).await?;
        let launched = match answer(run, "workload_launched", LAUNCHES_WITHIN).await? {
            Output::Launched { members } => members,
            _ => Vec::new(),
        };
        if let Some(grace) = run.step(ProbeWorkload { instance, generation, node_id }).await? {
            let within = ANSWERS_WITHIN + Duration::from_secs(u64::from(grace));
            answer(run, "workload_healthy", within).await?;
        }
        run.pivot();
        let correlation_id = run.correlation_id().to_owned();
        run.transact("mark_running", move |conn| {
            let (launched, correlation_id) = (launched.clone(), correlation_id.clone());
            Box::pin(
                async move { mark_running(conn, instance, generation, &launched, &correlation_id).await },
            )
        })
        .await
    }
}

/// The switch: what was the target serves from now on. An instance that is being decommissioned stays that.
async fn mark_running(
    conn: &mut PgConnection,
    instance: Uuid,
    generation: i64,
    launched: &[Launched],
    correlation_id: &str,
) -> Result<(), Fault> {
    let now = instance::held(conn, instance).await?;
    let endpoints: Vec<_> = launched
        .iter()
        .flat_map(|member| &member.ports)
        .map(|(name, port)| json!({ "name": name, "port": port }))
        .collect();
    app_instances::set_endpoints(conn, instance, &json!(endpoints)).await?;
    app_instance_artifacts::promote(conn, instance, Standing::Target, Standing::Serving).await?;
    app_instance_releases::promote(conn, instance, Standing::Target, Standing::Serving).await?;
    if now.status()? != InstanceStatus::Deploying {
        return Ok(());
    }
    let (from, to) = (InstanceStatus::Deploying, InstanceStatus::Running);
    app_instances::move_to(conn, instance, from, to, None).await?;
    let done =
        json!({ "kind": "deploy", "status": "succeeded", "version": now.version, "generation": generation });
    app_instances::set_last_operation(conn, instance, &done).await?;
    instance::tell(conn, instance, EventType::InstanceRunning, "deploy", correlation_id).await
}
