//! What lost nodes owe of runs that went on without them. A node that is back has the removal done first of all; with its evidence
//! the debt is paid. One that fails at it is asked again, where nobody else will.

use activities::instance;
use domain::{InstanceStatus, RuntimeBackend};
use engine::Fault;
use node_protocol::{Generations, Outcome, Remove, Task};
use serde_json::Value;
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::app_instance_releases;
use store::app_instances::AppInstance;
use store::node_tasks::{self, NewNodeTask};
use store::resource_ledger::{self as ledger, Kind};
use store::teardowns::{self, Debt};
use uuid::Uuid;

use super::switch::release_old;
use super::{Told, holder};

/// How many debts were paid.
pub(crate) async fn collect(conn: &mut PgConnection, told: &Told) -> Result<u32, Fault> {
    let mut paid = 0;
    for (debt, task, result) in teardowns::payable(conn).await? {
        paid += u32::from(settle(conn, &debt, (task, result), told).await?);
    }
    Ok(paid)
}

async fn settle(
    conn: &mut PgConnection,
    debt: &Debt,
    (task, result): (Uuid, Value),
    told: &Told,
) -> Result<bool, Fault> {
    let now = instance::held(conn, debt.instance_id).await?;
    let serves = app_instance_releases::find(conn, now.id, Standing::Serving).await?.is_some();
    let outcome: Result<Outcome, _> = serde_json::from_value(result);
    if !outcome.is_ok_and(|outcome| instance::gone(now.id, &outcome).is_ok()) {
        // What stands beside something that serves is the drift reconciler's.
        if !serves && now.status()? == InstanceStatus::Failed {
            ask_again(conn, &now, debt.node_id, task, told).await?;
        }
        return Ok(false);
    }
    if serves {
        release_old(conn, now.id, debt.node_id, true, told).await?;
    } else {
        let mut held = ledger::balance(conn, now.id).await?;
        held.retain(|held| held.kind == Kind::Workload.as_str());
        ledger::give_back(conn, holder(&now, told), &held).await?;
    }
    teardowns::collect(conn, now.id).await?;
    Ok(true)
}

/// One more task for each that failed.
async fn ask_again(
    conn: &mut PgConnection,
    now: &AppInstance,
    node_id: Uuid,
    failed: Uuid,
    told: &Told,
) -> Result<(), Fault> {
    let generations = Generations::UpTo(now.generation);
    let remove = Remove { instance_id: now.id, generations, for_good: true };
    let is_stack = now.runtime_backend == RuntimeBackend::DockerCompose.as_str();
    let task = if is_stack { Task::ComposeRemove(remove) } else { Task::OciRemove(remove) };
    let input = task.input().map_err(|error| Fault::needs_operator("unreadable", error.to_string()))?;
    let new = NewNodeTask {
        id: Uuid::now_v7(),
        node_id,
        org_id: Some(now.org_id),
        project_id: Some(now.project_id),
        instance_id: Some(now.id),
        kind: task.kind(),
        idempotency_key: &format!("debt/{failed}"),
        generation: now.generation,
        epoch: 1,
        wakes: None,
        input: &input,
        sealed: None,
        correlation_id: &told.correlation_id,
        trace_id: None,
    };
    node_tasks::insert(conn, &new).await?;
    Ok(())
}
