//! `instance.decommission`: take the workload away, believe only the node's signed evidence, give everything back, keep
//! the receipt. There is no way back: what was asked to end ends.
//!
//! A node that does not answer owes the removal. The debt is written down, the task stays open for it, and the run goes
//! on when the node comes back.

mod stands;

use std::time::Duration;

use activities::Env;
use activities::instance::{self, EndTrust, RemoveWorkload, ReportFailedRemoval, SignReceipt};
use domain::event::{NewEvent, Thread};
use domain::{EventType, InstanceStatus, Permission, StatusReason};
use engine::{
    Asker, Call, EngineError, Fault, Halt, NotAgain, PlannedStep, Run, Start, StartError, Workflow,
};
use node_protocol::{Generations, Outcome, Signed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instances::{AppInstance, Why};
use store::resource_ledger::{self as ledger, Holder, Kind};
use store::{
    app_instance_artifacts, app_instance_heartbeats, app_instance_releases, app_instances, meters, outbox,
    registry_credentials, teardowns,
};
use tracing::Span;
use uuid::Uuid;

use self::stands::{Stands, stop_accepting_work};
use super::{OperateInstanceInput, again};
use crate::action::{Action, Refused, Requester, Subject};
use crate::told::Told;

/// After this long a silent node is in debt.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10 * 60);
/// A node in debt may come back whenever it likes.
const SOME_DAY: Duration = Duration::from_secs(10 * 365 * 86_400);
/// A node that fails to remove is asked so often before the run rests and a person should look.
const ATTEMPTS: u32 = 5;

/// It pre-empts: whatever else acts on the instance is cancelled, and this waits for its undo.
pub struct Decommission;

impl Action for Decommission {
    type Subject = AppInstance;
    type Input = OperateInstanceInput;
    type Run = DecommissionInstance;

    const VERB: &'static str = "decommission";
    const OPERATION: &'static str = "decommission_app_instance";
    const SUMMARY: &'static str = "Take the instance away, with proof";
    const PERMISSION: Permission = Permission::AppsInstanceDelete;
    const SUPERSEDES: bool = true;

    fn is_legal(instance: &AppInstance) -> bool {
        instance.status().is_ok_and(|status| !status.is_terminal())
    }

    fn is_begun(instance: &AppInstance) -> bool {
        use InstanceStatus::{Decommissioned, Decommissioning};
        instance.status().is_ok_and(|status| matches!(status, Decommissioning | Decommissioned))
    }

    fn reason(input: &OperateInstanceInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        instance: &AppInstance,
        _: OperateInstanceInput,
        _: Requester,
    ) -> Result<DecommissionInstance, Refused> {
        Ok(begin_end(conn, instance).await?)
    }

    fn told(instance: &AppInstance, _: &DecommissionInstance) -> Option<(EventType, Value)> {
        let mut data = instance::public(instance, "decommission");
        data["status"] = json!(InstanceStatus::Decommissioning);
        Some((EventType::InstanceDecommissionRequested, data))
    }
}

/// From here on it only ends. Whoever asks again because a run was cancelled before its turn finds the instance so.
async fn begin_end(conn: &mut PgConnection, instance: &AppInstance) -> sqlx::Result<DecommissionInstance> {
    let generation = app_instances::next_generation(conn, instance.id).await?;
    let (from, to) = (instance.status()?, InstanceStatus::Decommissioning);
    if from != to {
        app_instances::move_to(conn, instance.id, from, to, None).await?;
    }
    Ok(DecommissionInstance { instance: instance.id, generation })
}

/// As if somebody had asked for it, under the correlation of whoever ends the instance. The run is still to be started.
pub(crate) async fn ask_for(
    conn: &mut PgConnection,
    instance: &AppInstance,
    thread: Thread<'_>,
) -> sqlx::Result<DecommissionInstance> {
    let run = begin_end(conn, instance).await?;
    if let Some((kind, data)) = Decommission::told(instance, &run) {
        let event = NewEvent::of_project(instance.owner(), kind, instance.id, &data, thread);
        outbox::insert(conn, &event).await?;
    }
    Ok(run)
}

/// The same, and the run with it.
pub(crate) async fn end(
    env: &Env,
    conn: &mut PgConnection,
    instance: &AppInstance,
    call: &Call,
) -> Result<(), Fault> {
    let run = ask_for(conn, instance, instance::thread(call)).await?;
    env.engine().start(conn, &run, begun_by(instance, call, true)).await.map_err(not_started)?;
    Ok(())
}

/// Whether a run was started because none acts any more on an instance that is to end: what began to end it was cancelled, or
/// could not begin. Where one does act, nothing may be committed.
pub(crate) async fn end_after_all(
    env: &Env,
    conn: &mut PgConnection,
    instance: &AppInstance,
    call: &Call,
) -> Result<bool, Fault> {
    let run = begin_end(conn, instance).await?;
    match env.engine().start(conn, &run, begun_by(instance, call, false)).await {
        Ok(_) => Ok(true),
        Err(StartError::TargetBusy(_)) => Ok(false),
        Err(error) => Err(not_started(error)),
    }
}

fn begun_by(instance: &AppInstance, call: &Call, supersede: bool) -> Start {
    Start {
        project_id: instance.project_id,
        org_id: Some(instance.org_id),
        correlation_id: call.correlation_id.to_string(),
        traceparent: call.traceparent.as_deref().map(str::to_owned),
        target: Some(instance.target()),
        supersede,
        ..Start::default()
    }
}

fn not_started(error: StartError) -> Fault {
    match error {
        StartError::Engine(EngineError::Database(error)) => error.into(),
        other => Fault::retry("not_started", other.to_string()),
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DecommissionInstance {
    pub instance: Uuid,
    pub generation: i64,
}

impl Workflow for DecommissionInstance {
    const NAME: &'static str = "instance.decommission";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("stop_accepting_work"),
        PlannedStep::transact("close_metering"),
        PlannedStep::activity("remove_workload"),
        PlannedStep::wait("workload_removed"),
        PlannedStep::activity("end_trust"),
        PlannedStep::wait("ssh_trust_ended"),
        PlannedStep::activity("sign_receipt"),
        PlannedStep::transact("mark_decommissioned"),
    ];
    type Env = Env;

    async fn span(&self, env: &Env) -> Span {
        activities::instance::span(env, self.instance).await
    }

    async fn again(self, conn: &mut PgConnection, by: &Asker) -> Result<Self, NotAgain> {
        let instance = again::held_for::<Decommission>(conn, self.instance).await?;
        Ok(ask_for(conn, &instance, by.correlation_id.as_str().into()).await?)
    }

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.pivot();
        let instance = self.instance;
        let stands: Stands = run
            .transact("stop_accepting_work", move |conn| Box::pin(stop_accepting_work(conn, instance)))
            .await?;
        // On its own, so that usage can be read at once, however long the removal takes.
        run.transact("close_metering", move |conn| {
            Box::pin(async move { Ok(meters::close(conn, instance).await?) })
        })
        .await?;
        let receipt = match stands.node() {
            Some(node_id) => {
                let evidence = self.removed(run, node_id).await?;
                if stands.may_have_left_a_key() {
                    self.untrusted(run, node_id).await?;
                }
                Some((node_id, run.step(SignReceipt { instance, node_id, evidence }).await?))
            }
            // It never stood anywhere, so there is nothing to show.
            None => None,
        };
        let told = Told::of(run);
        run.transact("mark_decommissioned", move |conn| {
            let (receipt, told) = (receipt.clone(), told.clone());
            Box::pin(async move { settle(conn, instance, receipt, &told).await })
        })
        .await
    }
}

impl DecommissionInstance {
    /// The node's evidence that nothing is left. A removal that the node could not do, or that left something, is asked for again,
    /// for as long as it takes: there is no way back, and what is on the node must not be forgotten.
    async fn removed(&self, run: &mut Run<Env>, node_id: Uuid) -> Result<Signed, Halt> {
        let DecommissionInstance { instance, generation } = *self;
        let mut asked = 0;
        loop {
            asked += 1;
            let attempt = asked.to_string();
            let (task, outcome) = self.answered(run, node_id, &attempt).await?;
            let asked_for = (task, Generations::UpTo(generation));
            let trouble = match instance::gone_as_asked(instance, asked_for, &outcome) {
                Ok(evidence) => return Ok(evidence.clone()),
                Err(trouble) => trouble,
            };
            if asked % ATTEMPTS == 0 {
                run.step_for(&attempt, ReportFailedRemoval { instance, trouble }).await?;
            }
        }
    }

    /// The node's word that the instance's key is not among those that open it. Asked for in the same way.
    async fn untrusted(&self, run: &mut Run<Env>, node_id: Uuid) -> Result<(), Halt> {
        let instance = self.instance;
        let mut asked = 0;
        loop {
            asked += 1;
            let attempt = format!("key-{asked}");
            run.step_for(&attempt, EndTrust { instance, node_id, attempt: attempt.clone() }).await?;
            let outcome = match run.wait_until("ssh_trust_ended", &attempt, ANSWERS_WITHIN).await? {
                Some(outcome) => outcome,
                None => {
                    let late = self.late(run, node_id, &attempt).await?;
                    run.step_for(&late, EndTrust { instance, node_id, attempt: late.clone() }).await?;
                    run.wait_for_key("ssh_trust_ended", late, SOME_DAY).await?
                }
            };
            let Err(trouble) = instance::keys_are_as_told(&outcome) else { return Ok(()) };
            if asked % ATTEMPTS == 0 {
                run.step_for(&attempt, ReportFailedRemoval { instance, trouble }).await?;
            }
        }
    }

    /// What the node answered, and to which task. A wait that is over hears nothing any more, so a node in debt is asked once
    /// again, under a new name.
    async fn answered(
        &self,
        run: &mut Run<Env>,
        node_id: Uuid,
        attempt: &str,
    ) -> Result<(Uuid, Outcome), Halt> {
        let task = self.ask(run, node_id, attempt).await?;
        if let Some(outcome) = run.wait_until("workload_removed", attempt, ANSWERS_WITHIN).await? {
            return Ok((task, outcome));
        }
        let late = self.late(run, node_id, attempt).await?;
        let task = self.ask(run, node_id, &late).await?;
        Ok((task, run.wait_for_key("workload_removed", late, SOME_DAY).await?))
    }

    async fn ask(&self, run: &mut Run<Env>, node_id: Uuid, attempt: &str) -> Result<Uuid, Halt> {
        let DecommissionInstance { instance, generation } = *self;
        let attempt = attempt.to_owned();
        let remove =
            RemoveWorkload { instance, generation, node_id, for_good: true, attempt: attempt.clone() };
        run.step_for(attempt, remove).await
    }

    /// The node is in debt. Answers the name under which it is asked once more.
    async fn late(&self, run: &mut Run<Env>, node_id: Uuid, attempt: &str) -> Result<String, Halt> {
        let (instance, run_id) = (self.instance, run.id());
        run.transact("record_debt", move |conn| Box::pin(record_debt(conn, instance, node_id, run_id)))
            .await?;
        Ok(format!("{attempt}-late"))
    }
}

async fn record_debt(conn: &mut PgConnection, instance: Uuid, node: Uuid, run: Uuid) -> Result<(), Fault> {
    instance::held(conn, instance).await?;
    teardowns::owe(conn, instance, node, run).await?;
    let message = "the node does not answer; the removal is owed and collected when it returns".to_owned();
    app_instances::note_reason(conn, instance, &Why { reason: StatusReason::NodeUnreachable, message })
        .await?;
    Ok(())
}

/// Everything that ends, ends in one commit; the ledger is at zero after it.
async fn settle(
    conn: &mut PgConnection,
    instance: Uuid,
    receipt: Option<(Uuid, Signed)>,
    told: &Told,
) -> Result<(), Fault> {
    let now = instance::held(conn, instance).await?;
    let holder = Holder {
        org_id: now.org_id,
        project_id: now.project_id,
        instance_id: instance,
        run_id: told.run,
        correlation_id: &told.correlation_id,
    };
    let held = ledger::balance(conn, instance).await?;
    for pull in held.iter().filter(|held| held.kind == Kind::PullIntent.as_str()) {
        if let Ok(id) = pull.resource.parse() {
            registry_credentials::revoke(conn, id).await?;
        }
    }
    ledger::give_back(conn, holder, &held).await?;
    instance::end_identity(conn, &now).await?;
    app_instance_artifacts::clear_all(conn, instance).await?;
    app_instance_releases::clear_all(conn, instance).await?;
    app_instance_heartbeats::clear(conn, instance).await?;
    teardowns::collect(conn, instance).await?;
    if let Some((node, receipt)) = receipt {
        teardowns::keep_receipt(conn, instance, node, &json!(receipt)).await?;
    }
    let (from, to) = (InstanceStatus::Decommissioning, InstanceStatus::Decommissioned);
    app_instances::move_to(conn, instance, from, to, None).await?;
    let done = json!({ "kind": "decommission", "status": "succeeded", "version": now.version });
    app_instances::set_last_operation(conn, instance, &done).await?;
    instance::tell(conn, instance, EventType::InstanceDecommissioned, "decommission", told.thread()).await
}
