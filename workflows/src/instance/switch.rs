//! The switch from the old workload to the new one, and what follows from it. Each is one transaction.

use activities::instance;
use domain::InstanceStatus;
use domain::placement::Grant;
use engine::Fault;
use node_protocol::Launched;
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::{self, AppInstance};
use store::resource_ledger::{self as ledger, Held, Kind};
use store::{app_instance_releases, service_account_keys};
use uuid::Uuid;

use super::change::Shift;
use super::deploy::endpoints;
use super::{Told, holder};

/// The new workload serves from here on; the old one is where a rollback goes. An instance that is being decommissioned
/// meanwhile stays that.
pub(super) async fn switch(
    conn: &mut PgConnection,
    shift: &Shift,
    launched: &[Launched],
    told: &Told,
) -> Result<(), Fault> {
    let id = shift.instance;
    // Versions are locked before instances.
    let by = (told.run, told.thread());
    instance::tell_canary(conn, id, Some(&shift.version), by, false).await?;
    let now = instance::held(conn, id).await?;
    let release = app_instance_releases::find(conn, id, Standing::Target).await?;
    let release =
        release.ok_or_else(|| Fault::needs_operator("no_target", "there is nothing to switch to"))?;
    for (from, to) in [(Standing::Serving, Standing::Previous), (Standing::Target, Standing::Serving)] {
        app_instance_artifacts::promote(conn, id, from, to).await?;
        app_instance_releases::promote(conn, id, from, to).await?;
    }
    app_instances::switch(conn, id, &release).await?;
    app_instances::set_endpoints(conn, id, &endpoints(launched)).await?;
    instance::end_pull(conn, &now, shift.pull, holder(&now, told)).await?;
    settle(conn, shift, told, json!({ "strategy": shift.strategy, "generation": shift.generation })).await
}

/// What was asked for serves already.
pub(super) async fn unchanged(conn: &mut PgConnection, shift: &Shift, told: &Told) -> Result<(), Fault> {
    instance::held(conn, shift.instance).await?;
    instance::clear_target(conn, shift.instance).await?;
    settle(conn, shift, told, json!({ "changes_nothing": true })).await
}

/// It runs, and tells what was done.
async fn settle(conn: &mut PgConnection, shift: &Shift, told: &Told, more: Value) -> Result<(), Fault> {
    let (from, to) = (shift.way.status(), InstanceStatus::Running);
    if !app_instances::move_to(conn, shift.instance, from, to, None).await? {
        return Ok(());
    }
    let operation = shift.way.as_str();
    let mut done = json!({
        "kind": operation, "status": "succeeded", "version": shift.version, "workflow_id": told.run,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        done[name] = value.clone();
    }
    app_instances::set_last_operation(conn, shift.instance, &done).await?;
    instance::tell(conn, shift.instance, shift.way.done(), operation, told.thread()).await
}

/// The instance holds what serves, and nothing of what served before: the node showed that it is gone.
pub(super) async fn release_old(
    conn: &mut PgConnection,
    id: Uuid,
    node: Uuid,
    told: &Told,
) -> Result<(), Fault> {
    let now = instance::held(conn, id).await?;
    let Some(serving) = app_instance_releases::find(conn, id, Standing::Serving).await? else {
        return Ok(());
    };
    let unreadable = |error: serde_json::Error| Fault::needs_operator("unreadable", error.to_string());
    let grant: Grant = serde_json::from_value(serving.resources).map_err(unreadable)?;
    if let Some(account) = now.operator_service_account_id {
        service_account_keys::revoke_before(conn, account, serving.generation).await?;
    }
    let kept = kept(&now, node, grant, (&serving.ports, &serving.gpus), serving.generation);
    ledger::keep_only(conn, holder(&now, told), &kept).await?;
    if let Some(mut last) = now.last_operation
        && last.as_object_mut().is_some_and(|last| last.remove("left_behind").is_some())
    {
        app_instances::set_last_operation(conn, id, &last).await?;
    }
    Ok(())
}

/// What an instance holds whose one workload serves.
fn kept(
    now: &AppInstance,
    node: Uuid,
    grant: Grant,
    (ports, gpus): (&Value, &[i32]),
    generation: i64,
) -> Vec<Held> {
    let held = |kind: Kind, resource: String, quantity: i64| Held {
        kind: kind.as_str().to_owned(),
        resource,
        quantity,
    };
    let from = now.allocation_id.map(ledger::allocation).unwrap_or_default();
    let mut all = vec![
        held(Kind::CpuCore, from.clone(), grant.cpu_cores.into()),
        held(Kind::MemoryGib, from, grant.memory_gib.into()),
        held(Kind::Workload, ledger::workload_on(node, generation), 1),
    ];
    if let Some(allocation) = now.allocation_id {
        all.extend(gpus.iter().map(|index| held(Kind::Gpu, ledger::gpu_of(allocation, *index), 1)));
    }
    let numbers = ports.as_object().into_iter().flat_map(|ports| ports.values());
    let numbers = numbers.filter_map(|port| u16::try_from(port.as_u64()?).ok());
    all.extend(numbers.map(|port| held(Kind::Port, ledger::port_of(node, port), 1)));
    all.extend(now.operator_service_account_id.map(|id| held(Kind::ServiceAccount, ledger::own(id), 1)));
    all
}
