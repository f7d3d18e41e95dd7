//! The effects of an instance's lifecycle: on its rows, and through tasks on its node.

mod admit;
mod ask;
mod begin;
mod begin_change;
mod credentials;
mod drift;
mod end_trust;
mod evidence;
mod identity;
mod launch;
mod probe;
mod pull;
mod receipt;
mod remove;
mod report_removal;
mod reserve;
mod stack;
mod stop;
mod target;
mod verdict;
mod workload;

pub use admit::{CheckEntitlement, ResolveArtifacts};
pub use ask::{ASKED, AskWorkload};
pub use begin::BeginDeploy;
pub use begin_change::{BeginChange, Way};
pub use credentials::revoke_key;
pub use drift::{RESTARTED, RemoveStray, RestartWorkload, STRAY_REMOVED};
pub use end_trust::{EndTrust, UNTRUSTED, keys_are_as_told, was_given_key};
pub use evidence::{gone, gone_as_asked};
pub use identity::{ProvisionIdentity, TRUSTED, TellTrustAgain, end_identity};
pub use launch::{LAUNCHED, LaunchWorkload};
pub use probe::{HEALTHY, ProbeWorkload};
pub use pull::{IssuePullIntent, end_pull};
pub use receipt::SignReceipt;
pub use remove::{REMOVED, RemoveWorkload};
pub use report_removal::ReportFailedRemoval;
pub use reserve::{Placement, ReservePlacement};
pub use stop::{STOPPED, StopWorkload};
pub use target::{ResolveTarget, Target, clear_target};
pub use verdict::{tell_canary, why};

use domain::event::{NewEvent, Thread};
use domain::{ControlPlaneScope, EventType, NodeStatus, RuntimeBackend};
use engine::{Call, Fault};
use node_protocol::{Control, Outcome, Remove, Task};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instances::{self, AppInstance};
use store::node_tasks::{self, NewNodeTask};
use store::resource_ledger::Holder;
use store::{nodes, outbox};
use tracing::field::Empty;
use tracing::{Span, info_span};
use uuid::Uuid;

use crate::env::Env;

/// The instance, held still until the transaction ends. A run never outlives its instance's row.
pub async fn held(conn: &mut PgConnection, instance: Uuid) -> Result<AppInstance, Fault> {
    let found = app_instances::find_locked(conn, instance).await?;
    found.ok_or_else(|| Fault::terminal("no_such_instance", format!("there is no instance {instance}")))
}

/// What everything that a call tells belongs to.
pub fn thread(call: &Call) -> Thread<'_> {
    Thread { correlation_id: &call.correlation_id, traceparent: call.traceparent.as_deref() }
}

/// What the log and the traces of a run say of the instance it acts on. One that cannot be read now is told by its id.
pub async fn span(env: &Env, instance: Uuid) -> Span {
    let span = info_span!(
        "instance",
        app_instance_id = %instance,
        operating_mode = Empty,
        control_plane_scope = Empty,
        runtime_backend = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let found = async {
        let mut tx = env.pool().begin().await?;
        let found = app_instances::find(&mut tx, instance).await?;
        tx.rollback().await?;
        Ok::<_, sqlx::Error>(found)
    };
    if let Ok(Some(instance)) = found.await {
        span.record("operating_mode", &instance.operating_mode);
        span.record("control_plane_scope", &instance.control_plane_scope);
        span.record("runtime_backend", &instance.runtime_backend);
    }
    span
}

/// Tells of an instance as it is now, last in the transaction that changed it.
pub async fn tell(
    conn: &mut PgConnection,
    instance: Uuid,
    kind: EventType,
    operation: &str,
    thread: Thread<'_>,
) -> Result<(), Fault> {
    let now = held(conn, instance).await?;
    let owner = (now.org_id, now.project_id);
    let event = NewEvent::of_project(owner, kind, now.id, &public(&now, operation), thread);
    outbox::insert(conn, &event).await?;
    Ok(())
}

/// What events tell of an instance: its public form, and what was done. Config and placement intent are left to whoever reads the
/// instance, because they may be larger than a message; so are artifacts and allowed actions, which are not in its row.
pub fn public(instance: &AppInstance, operation: &str) -> Value {
    let scope: Option<ControlPlaneScope> = instance.control_plane_scope.parse().ok();
    json!({
        "id": instance.id, "org_id": instance.org_id, "project_id": instance.project_id,
        "app_slug": instance.app_slug, "version": instance.version, "target_version": instance.target_version,
        "display_name": instance.display_name, "status": instance.status, "operation": operation,
        "status_reason": instance.status_reason, "message": instance.status_message,
        "operating_mode": instance.operating_mode, "control_plane_scope": instance.control_plane_scope,
        "runtime_backend": instance.runtime_backend, "tenant_boundary_mode": scope.map(ControlPlaneScope::boundary),
        "resources": instance.resources, "allocation_id": instance.allocation_id, "generation": instance.generation,
        "operator_service_account_id": instance.operator_service_account_id,
        "last_operation": instance.last_operation, "correlation_id": instance.correlation_id,
        "created_at": instance.created_at, "activated_at": instance.activated_at,
    })
}

fn holder<'a>(instance: &AppInstance, call: &'a Call) -> Holder<'a> {
    Holder {
        org_id: instance.org_id,
        project_id: instance.project_id,
        instance_id: instance.id,
        run_id: call.run,
        correlation_id: &call.correlation_id,
    }
}

/// A task for the instance's node, on behalf of this call. The run waits for `signal`.
struct Order<'a> {
    instance: &'a AppInstance,
    node: Uuid,
    generation: i64,
    kind: &'a str,
    input: &'a Value,
    signal: Option<&'a str>,
    /// The task's id, and what is sealed for it.
    sealed: Option<(Uuid, &'a str)>,
}

impl Order<'_> {
    fn task<'a>(&'a self, call: &'a Call) -> NewNodeTask<'a> {
        NewNodeTask {
            id: self.sealed.map_or_else(Uuid::now_v7, |(id, _)| id),
            node_id: self.node,
            org_id: Some(self.instance.org_id),
            project_id: Some(self.instance.project_id),
            instance_id: Some(self.instance.id),
            kind: self.kind,
            idempotency_key: &call.idempotency_key,
            generation: self.generation,
            epoch: call.epoch,
            wakes: self.signal.map(|signal| (call.run, signal)),
            input: self.input,
            sealed: self.sealed.map(|(_, sealed)| sealed),
            correlation_id: &call.correlation_id,
            trace_id: call.trace_id.as_deref(),
        }
    }
}

/// Has the node do a task that an undo needs, and asks anew where its answer is none that settles it: an engine that was away for
/// a moment must not leave a run stuck for good. What the node answered, or why it is still to be waited for.
async fn insist(
    conn: &mut PgConnection,
    order: &Order<'_>,
    call: &Call,
    settles: impl Fn(&Outcome) -> Result<(), String>,
) -> Result<Result<Outcome, String>, Fault> {
    let mut trouble = "the node has not answered yet".to_owned();
    for asked in 0_u32.. {
        let key = match asked {
            0 => call.idempotency_key.to_string(),
            more => format!("{}/{more}", call.idempotency_key),
        };
        let task = NewNodeTask { idempotency_key: &key, ..order.task(call) };
        let id = node_tasks::insert(conn, &task).await?;
        let result = node_tasks::find(conn, id).await?.and_then(|task| task.result);
        match result.map(serde_json::from_value::<Outcome>) {
            None => break,
            Some(Ok(outcome)) => match settles(&outcome) {
                Ok(()) => return Ok(Ok(outcome)),
                Err(why) => trouble = why,
            },
            Some(Err(error)) => return Err(unreadable(&error)),
        }
    }
    Ok(Err(trouble))
}

/// Whether the node was given up for lost: nobody waits for its answer, and what it has is owed.
async fn is_lost(conn: &mut PgConnection, node: Uuid) -> Result<bool, Fault> {
    let node = nodes::find(conn, node).await?;
    Ok(node.map(|node| node.status()).transpose()? == Some(NodeStatus::Unavailable))
}

/// Whether the instance is a Compose stack.
fn is_stack(instance: &AppInstance) -> bool {
    instance.runtime_backend == RuntimeBackend::DockerCompose.as_str()
}

/// The task that takes workloads of the instance away.
pub fn removal(instance: &AppInstance, remove: Remove) -> Task {
    if is_stack(instance) { Task::ComposeRemove(remove) } else { Task::OciRemove(remove) }
}

fn control(instance: &AppInstance, control: Control) -> Task {
    if is_stack(instance) { Task::ComposeControl(control) } else { Task::OciControl(control) }
}

/// What a row of ours says that this release cannot read needs a person, not a repetition.
fn unreadable(error: &dyn std::fmt::Display) -> Fault {
    Fault::needs_operator("unreadable", error.to_string())
}
