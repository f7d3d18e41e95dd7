//! Nodes that fell silent are given up for lost, and what ran there has failed; a node that speaks again and still has its
//! workloads has them back, as if nothing had been. What a run brings or changes there says meanwhile what it waits for. What the
//! node returns without is the drift reconciler's; what it owed is collected. And a node that could not write who may log in is
//! told once more.

use std::time::Duration;

use activities::{Env, instance, trust};
use domain::event::NewEvent;
use domain::{EventType, InstanceStatus, NodeStatus, StatusReason};
use engine::{Fault, Halt, Missed, OnExhausted, Overlap, PlannedStep, Run, Schedule, Workflow};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::app_instances::{self, AppInstance, Why};
use store::nodes::{self, Node};
use store::{allocations, outbox};
use tracing::warn;
use uuid::Uuid;

use super::drift::{Claim, Wanted, compare, workloads};
use crate::instance::debts;
use crate::part::{INSTANCES_AT_ONCE, Part};
use crate::told::Told;

/// A look that was missed is not made up for: the next one sees the same.
pub const QUARTER_MINUTELY: Schedule =
    Schedule { name: "lost_nodes", cron: "*/15 * * * * *", missed: Missed::Skip, overlap: Overlap::Skip };

/// Six reports that did not come.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// A node goes with all that runs there.
const NODES_AT_ONCE: usize = 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WatchNodes {}

impl Workflow for WatchNodes {
    const NAME: &'static str = "platform.watch_nodes";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("give_up_silent"),
        PlannedStep::transact("take_back_returned"),
        PlannedStep::transact("collect_debts"),
        PlannedStep::transact("tell_keys_again"),
    ];
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let lost = in_parts(run, "give_up_silent", |conn, _, told| Box::pin(give_up(conn, told))).await?;
        let back =
            in_parts(run, "take_back_returned", |conn, after, told| Box::pin(take_back(conn, after, told)))
                .await?;
        let paid =
            in_parts(run, "collect_debts", |conn, after, told| Box::pin(debts::collect(conn, after, told)))
                .await?;
        let correlation_id = run.correlation_id().to_owned();
        let told: usize = run
            .transact("tell_keys_again", move |conn| {
                let correlation_id = correlation_id.clone();
                Box::pin(async move { Ok(trust::tell_again(conn, &correlation_id).await?) })
            })
            .await?;
        run.output(&json!({
            "nodes_lost": lost, "instances_recovered": back, "debts_collected": paid,
            "nodes_told_keys_again": told,
        }))
        .await
    }
}

/// In one transaction.
type Deals = for<'c> fn(&'c mut PgConnection, Option<Uuid>, &'c Told) -> BoxFuture<'c, Result<Part, Fault>>;

/// Where many are to be dealt with, in a transaction for each part of them: nobody else gets at their rows meanwhile. Answers
/// how many there were.
async fn in_parts(run: &mut Run<Env>, name: &'static str, deals: Deals) -> Result<u32, Halt> {
    let (mut all, mut after) = (0, None);
    for number in 0_u32.. {
        let told = Told::of(run);
        let part: Part = run
            .transact_for(name, number, move |conn| {
                let told = told.clone();
                Box::pin(async move { deals(conn, after, &told).await })
            })
            .await?;
        all += part.done;
        if part.next.is_none() {
            break;
        }
        after = part.next;
    }
    Ok(all)
}

/// Nodes that are given up are silent no more, so the next part begins with those that are left.
async fn give_up(conn: &mut PgConnection, told: &Told) -> Result<Part, Fault> {
    let correlation_id = told.correlation_id.as_str();
    let silent = nodes::silent(conn, SILENT_FOR.as_secs_f64()).await?;
    let (part, next) = Part::of(&silent, NODES_AT_ONCE);
    let mut lost = 0;
    for id in part.iter().copied() {
        let Some(node) = nodes::find_locked(conn, id).await? else { continue };
        if !nodes::move_to(conn, id, node.status()?, NodeStatus::Unavailable).await? {
            continue;
        }
        lost += 1;
        let mut running = Vec::new();
        for instance in app_instances::on_node(conn, id, InstanceStatus::Running).await? {
            running.push((fail(conn, instance, &node, correlation_id).await?, instance));
        }
        tell(conn, &node, &running, correlation_id).await?;
    }
    if next.is_some() {
        return Ok(Part { done: lost, next });
    }
    // A run that turned back after its node was lost leaves an instance that runs by its own word.
    for (instance, node) in app_instances::running_on_lost_nodes(conn).await? {
        if let Some(node) = nodes::find(conn, node).await? {
            fail(conn, instance, &node, correlation_id).await?;
        }
    }
    for (instance, node) in app_instances::changing_on_lost_nodes(conn).await? {
        let Some(node) = nodes::find(conn, node).await? else { continue };
        let now = instance::held(conn, instance).await?;
        if is_changing(&now)? && now.reason()?.is_none() {
            app_instances::note_reason(conn, instance, &silent_node(&node)).await?;
        }
    }
    Ok(Part { done: lost, next })
}

/// Whether a run is about to bring it or to change it, and says in the end what became of it.
fn is_changing(instance: &AppInstance) -> sqlx::Result<bool> {
    use InstanceStatus::{Deploying, RollingBack, Upgrading};
    Ok(matches!(instance.status()?, Deploying | Upgrading | RollingBack))
}

fn silent_node(node: &Node) -> Why {
    let message = format!("the node {} has not been heard of for {} s", node.name, SILENT_FOR.as_secs());
    Why { reason: StatusReason::NodeUnreachable, message }
}

/// Everybody who holds a part of the node hears of it with what ran there of theirs; the platform's own stream, with all.
async fn tell(
    conn: &mut PgConnection,
    node: &Node,
    running: &[(Uuid, Uuid)],
    correlation_id: &str,
) -> Result<(), Fault> {
    let data = |project: Option<Uuid>| {
        let theirs = running.iter().filter(|(of, _)| project.is_none_or(|project| project == *of));
        let instances: Vec<Uuid> = theirs.map(|(_, instance)| *instance).collect();
        json!({ "id": node.id, "name": node.name, "last_seen_at": node.last_seen_at, "instances": instances })
    };
    for owner in allocations::holders(conn, node.id).await? {
        let data = data(Some(owner.1));
        let event = NewEvent::of_project(owner, EventType::NodesLost, node.id, &data, correlation_id);
        outbox::insert(conn, &event).await?;
    }
    let event = NewEvent::of_platform(EventType::NodesLost, node.id, &data(None), correlation_id);
    outbox::insert(conn, &event).await?;
    Ok(())
}

/// Answers whose it was.
async fn fail(conn: &mut PgConnection, id: Uuid, node: &Node, correlation_id: &str) -> Result<Uuid, Fault> {
    let project = instance::held(conn, id).await?.project_id;
    let (from, to) = (InstanceStatus::Running, InstanceStatus::Failed);
    if app_instances::move_to(conn, id, from, to, Some(&silent_node(node))).await? {
        instance::tell(conn, id, EventType::InstanceFailed, "watch", correlation_id.into()).await?;
    }
    Ok(project)
}

/// What cannot be judged of one instance is its own trouble: it is left for the next look, and keeps no other from its turn.
async fn take_back(conn: &mut PgConnection, after: Option<Uuid>, told: &Told) -> Result<Part, Fault> {
    let correlation_id = told.correlation_id.as_str();
    let mut unreachable = app_instances::unreachable_on_live_nodes(conn).await?;
    unreachable.retain(|(id, _)| after.is_none_or(|after| *id > after));
    let (part, last) = Part::of(&unreachable, INSTANCES_AT_ONCE);
    let (mut back, next) = (0, last.map(|(id, _)| id));
    for (id, node) in part.iter().copied() {
        match recover(conn, id, node, correlation_id).await {
            Ok(recovered) => back += u32::from(recovered),
            Err(fault @ Fault::NeedsOperator(_)) => {
                warn!(instance = %id, ?fault, "whether an instance runs again cannot be told");
            }
            Err(fault) => return Err(fault),
        }
    }
    if next.is_some() {
        return Ok(Part { done: back, next });
    }
    for id in app_instances::changing_on_live_nodes(conn).await? {
        let now = instance::held(conn, id).await?;
        if is_changing(&now)? && now.reason()? == Some(StatusReason::NodeUnreachable) {
            app_instances::forget_reason(conn, id).await?;
        }
    }
    Ok(Part { done: back, next })
}

/// Whether it runs again. Everything is read before anything is written.
async fn recover(conn: &mut PgConnection, id: Uuid, node: Uuid, correlation_id: &str) -> Result<bool, Fault> {
    let Some(node) = nodes::find(conn, node).await? else { return Ok(false) };
    let now = instance::held(conn, id).await?;
    let waits =
        now.status()? == InstanceStatus::Failed && now.reason()? == Some(StatusReason::NodeUnreachable);
    if !waits || !still_runs(conn, &now, &node).await? {
        return Ok(false);
    }
    use InstanceStatus::{Deploying, Failed, Running};
    app_instances::move_to(conn, id, Failed, Deploying, None).await?;
    app_instances::move_to(conn, id, Deploying, Running, None).await?;
    instance::tell(conn, id, EventType::InstanceRunning, "recover", correlation_id.into()).await?;
    Ok(true)
}

/// Whether the node's last report shows the very workloads that serve, all of them. What is missing or stands still is the drift
/// reconciler's to bring back.
async fn still_runs(conn: &mut PgConnection, instance: &AppInstance, node: &Node) -> Result<bool, Fault> {
    let Some(serving) = Wanted::of(conn, instance.id).await? else { return Ok(false) };
    let found = compare(instance.id, Claim::Runs, Some(&serving), &workloads(node)?);
    Ok(!found.missing && found.stopped.is_none())
}
