//! Upgrading, rolling back, giving an allocation back, watching nodes and bringing back what drifted survive being struck
//! anywhere, as deploying does.

use std::sync::Arc;

use activities::Env;
use activities::instance::Way;
use domain::placement::Strategy;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use futures::future::BoxFuture;
use uuid::Uuid;
use workflows::allocation::ReleaseAllocation;
use workflows::instance::reconcile::ReconcileInstance;
use workflows::instance::{RollbackInstance, Shift, UpgradeInstance};
use workflows::reconcilers::drift::WatchDrift;
use workflows::reconcilers::lost_nodes::WatchNodes;

use super::catalog::furnish;
use super::instance::{begin_anew, left};
use super::{ALLOCATION, INSTANCE, NODE};
use crate::support::database::TestDatabase;

/// From the version that serves to the other one.
fn shift(way: Way, strategy: Strategy) -> Shift {
    Shift {
        instance: INSTANCE,
        generation: 3,
        way,
        version: "1.1.0".into(),
        artifact_id: None,
        strategy,
        pull: Uuid::from_u128(0x31),
    }
}

async fn strike_upgrade(strategy: Strategy) {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: UpgradeInstance(shift(Way::Upgrade, strategy)),
        fresh_env: |engine| begin_anew(engine, "running", true),
        leftovers: left,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrading_side_by_side_survives_being_struck_anywhere() {
    strike_upgrade(Strategy::SideBySide).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrading_by_stopping_first_survives_being_struck_anywhere() {
    strike_upgrade(Strategy::StopThenStart).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_back_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: RollbackInstance(shift(Way::Rollback, Strategy::SideBySide)),
        fresh_env: |engine| begin_anew(engine, "running", true),
        leftovers: left,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_an_allocation_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: ReleaseAllocation { allocation: ALLOCATION },
        fresh_env: occupied,
        leftovers: |_env| Vec::new(),
        while_waiting: leave,
    })
    .await;
    let status: String = sqlx::query_scalar("select status from allocations where id = $1")
        .bind(ALLOCATION)
        .fetch_one(&database.pool())
        .await
        .unwrap();
    assert_eq!(status, "released");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_nodes_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: WatchNodes {},
        fresh_env: fallen_silent,
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    // Every time it fell silent at another moment.
    let (told, times): (i64, i64) = sqlx::query_as(
        "select count(*), count(distinct (project_id, data ->> 'last_seen_at')) from outbox where type = 'nodes.lost'",
    )
    .fetch_one(&database.pool())
    .await
    .unwrap();
    assert!(0 < told);
    assert_eq!(told, times, "each loss is told once to everybody whom it concerns");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_drift_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: WatchDrift {},
        fresh_env: drifted,
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    let acting = "select count(*) from engine.run where kind = 'instance.reconcile' and finished_at is null";
    let acting: i64 = sqlx::query_scalar(acting).fetch_one(&database.pool()).await.unwrap();
    assert_eq!(acting, 1, "however often it was looked at, one run acts on the instance");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bringing_back_what_drifted_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: ReconcileInstance { instance: INSTANCE, node_id: NODE },
        fresh_env: drifted,
        leftovers: |_env| Vec::new(),
        while_waiting: report,
    })
    .await;
    database.drop().await;
}

/// What serves stands still, and something is there beside it.
fn drifted(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "running", true);
    let ports = r#"update app_instance_releases set ports = '{ "http": 30000 }' where standing = 'serving'"#;
    at_once(run(engine, ports));
    at_once(run(
        engine,
        r#"update nodes set status = 'active', report = '{ "workloads": [
            { "instance_id": "00000000-0000-0000-0000-000000000019", "member": "main", "generation": 2, "state": "exited",
              "health": "unknown", "usage": { "cpu_milliseconds": 0, "memory_bytes": 0 } },
            { "instance_id": "00000000-0000-0000-0000-000000000019", "member": "main", "generation": 1, "state": "running",
              "health": "unknown", "usage": { "cpu_milliseconds": 0, "memory_bytes": 0 } }] }'"#,
    ));
    env
}

/// The node goes on reporting.
fn report(engine: Engine, _: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move { run(&engine, "update nodes set report_sequence = report_sequence + 2").await })
}

/// An instance stands on the allocation; somebody else takes it away.
fn occupied(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "decommissioned", false);
    at_once(run(engine, "update app_instances set status = 'decommissioning'"));
    at_once(run(engine, "update allocations set status = 'releasing', released_at = null"));
    env
}

fn leave(engine: Engine, _: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move { run(&engine, "update app_instances set status = 'decommissioned'").await })
}

/// The node was not heard of for long, and an instance runs there.
fn fallen_silent(engine: &Engine) -> Arc<Env> {
    // A look that failed before it gave up anything leaves the instance as it was, which holds nothing here.
    at_once(run(engine, "update app_instances set status = 'failed'"));
    let env = begin_anew(engine, "running", false);
    let silent = "update nodes set status = 'active', last_seen_at = engine.now() - interval '1 hour'";
    at_once(run(engine, silent));
    env
}

fn at_once(work: impl Future<Output = ()>) {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work));
}

async fn run(engine: &Engine, statement: &'static str) {
    sqlx::query(statement).execute(engine.pool().bare()).await.unwrap();
}
