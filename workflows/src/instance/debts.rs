//! What nodes owe of runs that went on without them: removals that they did not answer, or failed at. A node that is back has what
//! was asked of it done first of all; once its evidence shows that everything is gone which it owes, the debt is paid. Until then it
//! is asked again, where nobody else will.

use activities::instance;
use domain::InstanceStatus;
use engine::Fault;
use node_protocol::{Evidence, Generations, Outcome, Remove};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::app_instance_releases;
use store::app_instances::{self, AppInstance};
use store::node_tasks::{self, NewNodeTask};
use store::resource_ledger::{self as ledger, Kind};
use store::teardowns::{self, Payable};
use tracing::warn;
use uuid::Uuid;

use super::switch::release_old;
use super::{Told, holder};
use crate::part::{INSTANCES_AT_ONCE, Part};

/// A change went on although the node did not show in time that the old workload is gone: from here on it owes that, and what is
/// held stays on the books. An answer that came after all, before the instance was held, counts; a node that answered that it
/// could not is asked again.
pub(super) async fn owe_old(conn: &mut PgConnection, id: Uuid, node: Uuid, told: &Told) -> Result<(), Fault> {
    let now = instance::held(conn, id).await?;
    let asked = node_tasks::of_run(conn, told.run).await?;
    let asked = asked.into_iter().find(|task| task.signal.as_deref() == Some(instance::REMOVED));
    let answered = asked.and_then(|task| Some((task.id, task.result?)));
    if answered.as_ref().is_some_and(|(_, result)| shown_gone(id, result).is_some()) {
        return release_old(conn, id, node, told).await;
    }
    teardowns::owe(conn, id, node, told.run).await?;
    if let Some((failed, _)) = answered {
        let serving = serving(conn, id).await?;
        let owed = owed(conn, &now, node, serving).await?;
        if let Some(remove) = still_to_remove(&now, serving, &owed)? {
            ask_again(conn, &now, node, (failed, remove), told).await?;
        }
    }
    let mut last = now.last_operation.clone().unwrap_or_else(|| json!({}));
    last["left_behind"] = json!("the old workload");
    app_instances::set_last_operation(conn, id, &last).await?;
    Ok(())
}

/// Those of instances that no run acts on. One of an instance that cannot be read stays open, and keeps no other from being
/// collected.
pub(crate) async fn collect(
    conn: &mut PgConnection,
    after: Option<Uuid>,
    told: &Told,
) -> Result<Part, Fault> {
    let payable = teardowns::payable(conn, told.run, None).await?;
    let owing = payable.iter().map(|payable| payable.debt.instance_id);
    let owing: Vec<Uuid> = owing.filter(|id| after.is_none_or(|after| *id > after)).collect();
    let (part, next) = Part::of(&owing, INSTANCES_AT_ONCE);
    let mut paid = 0;
    for instance in part.iter().copied() {
        match settle(conn, instance, told).await {
            Ok(settled) => paid += u32::from(settled),
            Err(fault @ Fault::NeedsOperator(_)) => {
                warn!(%instance, ?fault, "what a node gave back cannot be told");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(Part { done: paid, next })
}

/// Whether the debt is paid: what the node showed to be gone is all that it owes, not only what it was asked for last.
/// Everything is read before anything is written, and under the instance's lock: a run may have begun to act on it meanwhile.
pub(super) async fn settle(conn: &mut PgConnection, instance: Uuid, told: &Told) -> Result<bool, Fault> {
    let now = instance::held(conn, instance).await?;
    let payable = teardowns::payable(conn, told.run, Some(instance)).await?.pop();
    let Some(Payable { debt, answered, done }) = payable else { return Ok(false) };
    let serving = serving(conn, now.id).await?;
    let mut owed = owed(conn, &now, debt.node_id, serving).await?;
    let gone: Vec<Generations> = done.iter().filter_map(|result| shown_gone(now.id, result)).collect();
    owed.retain(|generation| !gone.iter().any(|gone| gone.contain(*generation)));
    if gone.is_empty() || !owed.is_empty() {
        if let Some(remove) = still_to_remove(&now, serving, &owed)? {
            ask_again(conn, &now, debt.node_id, (answered, remove), told).await?;
        }
        return Ok(false);
    }
    if serving.is_some() {
        release_old(conn, now.id, debt.node_id, told).await?;
    } else {
        ledger::give_back_for_takers(conn, holder(&now, told)).await?;
    }
    teardowns::collect(conn, now.id).await?;
    Ok(true)
}

/// The generation that serves, if one does.
async fn serving(conn: &mut PgConnection, instance: Uuid) -> Result<Option<i64>, Fault> {
    let serving = app_instance_releases::find(conn, instance, Standing::Serving).await?;
    Ok(serving.map(|release| release.generation))
}

/// The workloads on the books that do not serve, by generation.
async fn owed(
    conn: &mut PgConnection,
    now: &AppInstance,
    node: Uuid,
    serving: Option<i64>,
) -> Result<Vec<i64>, Fault> {
    let held = ledger::balance(conn, now.id).await?;
    let workloads = held.iter().filter(|held| held.kind == Kind::Workload.as_str());
    let generations = workloads.filter_map(|held| ledger::generation_on(node, &held.resource));
    Ok(generations.filter(|generation| Some(*generation) != serving).collect())
}

/// Which workloads the node's answer shows to be gone, if it does.
fn shown_gone(instance: Uuid, result: &Value) -> Option<Generations> {
    let outcome: Outcome = serde_json::from_value(result.clone()).ok()?;
    let evidence: Evidence = instance::gone(instance, &outcome).ok()?.said()?;
    Some(evidence.generations)
}

/// What a node that still owes is asked for next. What serves never goes with it. Of an instance that failed nothing is to stay.
/// None where it is somebody else's to ask.
fn still_to_remove(now: &AppInstance, serving: Option<i64>, owed: &[i64]) -> Result<Option<Remove>, Fault> {
    let remove = |generations, for_good| Some(Remove { instance_id: now.id, generations, for_good });
    Ok(match (serving, owed.iter().min()) {
        (Some(serving), Some(&newer)) if newer > serving => remove(Generations::Only(newer), false),
        (Some(serving), _) => remove(Generations::UpTo(serving - 1), false),
        (None, _) if now.status()? == InstanceStatus::Failed => {
            remove(Generations::UpTo(now.generation), true)
        }
        (None, _) => None,
    })
}

/// Once for each answer that was not enough.
async fn ask_again(
    conn: &mut PgConnection,
    now: &AppInstance,
    node: Uuid,
    (answered, remove): (Uuid, Remove),
    told: &Told,
) -> Result<(), Fault> {
    let task = instance::removal(now, remove);
    let input = task.input().map_err(|error| Fault::needs_operator("unreadable", error.to_string()))?;
    let new = NewNodeTask {
        id: Uuid::now_v7(),
        node_id: node,
        org_id: Some(now.org_id),
        project_id: Some(now.project_id),
        instance_id: Some(now.id),
        kind: task.kind(),
        idempotency_key: &format!("debt/{answered}"),
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
