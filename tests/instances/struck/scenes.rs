//! The scenes in which instances are struck: a workflow, and a world in which it has something to do.

use std::sync::Arc;

use activities::Env;
use activities::instance::Way;
use domain::placement::Strategy;
use engine::Engine;
use engine::testing::Check;
use futures::future::BoxFuture;
use uuid::Uuid;
use workflows::allocation::ReleaseAllocation;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;
use workflows::instance::reconcile::ReconcileInstance;
use workflows::instance::{RollbackInstance, Shift, UpgradeInstance};

use super::instance::{begin_anew, left};
use super::{ACCOUNT, ALLOCATION, INSTANCE, NODE, PULL};
use crate::lifecycle::wait_for;
use crate::support::database::TestDatabase;

pub(super) type Scene<W> = fn(&TestDatabase) -> Check<W>;

fn check<W: engine::Workflow<Env = Env>>(
    database: &TestDatabase,
    workflow: W,
    fresh_env: fn(&Engine) -> Arc<Env>,
) -> Check<W> {
    let database = database.options.clone();
    Check { database, workflow, fresh_env, leftovers: left, while_waiting: |_, _| Box::pin(async {}) }
}

pub(super) fn deploying(database: &TestDatabase) -> Check<DeployInstance> {
    let deploy = DeployInstance { account: ACCOUNT, pull: PULL, ..DeployInstance::new(INSTANCE, 1) };
    check(database, deploy, |engine| begin_anew(engine, "requested", false))
}

/// After whatever the node has of it is gone, and with a key that opens the node.
pub(super) fn deploying_again(database: &TestDatabase) -> Check<DeployInstance> {
    let again = DeployInstance { clears: Some(NODE), ..DeployInstance::new(INSTANCE, 1) };
    check(database, DeployInstance { account: ACCOUNT, pull: PULL, ..again }, trusting)
}

/// With a key that opens the node as long as the instance is there.
pub(super) fn decommissioning(database: &TestDatabase) -> Check<DecommissionInstance> {
    let decommission = DecommissionInstance { instance: INSTANCE, generation: 3 };
    check(database, decommission, trusted)
}

/// From the version that serves to this one.
fn shift(way: Way, strategy: Strategy, version: &str) -> Shift {
    Shift {
        instance: INSTANCE,
        generation: 3,
        way,
        version: version.into(),
        artifact_id: None,
        strategy,
        pull: Uuid::from_u128(0x31),
    }
}

fn upgrading(database: &TestDatabase, strategy: Strategy, version: &str) -> Check<UpgradeInstance> {
    let upgrade = UpgradeInstance(shift(Way::Upgrade, strategy, version));
    check(database, upgrade, |engine| begin_anew(engine, "running", true))
}

pub(super) fn upgrading_side_by_side(database: &TestDatabase) -> Check<UpgradeInstance> {
    upgrading(database, Strategy::SideBySide, "1.1.0")
}

pub(super) fn upgrading_by_stopping_first(database: &TestDatabase) -> Check<UpgradeInstance> {
    upgrading(database, Strategy::StopThenStart, "1.1.0")
}

/// To what serves already.
pub(super) fn upgrading_to_the_same(database: &TestDatabase) -> Check<UpgradeInstance> {
    upgrading(database, Strategy::SideBySide, "1.0.0")
}

pub(super) fn rolling_back(database: &TestDatabase) -> Check<RollbackInstance> {
    let rollback = RollbackInstance(shift(Way::Rollback, Strategy::SideBySide, "1.1.0"));
    check(database, rollback, |engine| begin_anew(engine, "running", true))
}

/// Something runs on the allocation, and is decommissioned by a run that this one starts.
pub(super) fn releasing(database: &TestDatabase) -> Check<ReleaseAllocation> {
    let release = ReleaseAllocation { allocation: ALLOCATION };
    Check { while_waiting: until_it_is_gone, ..check(database, release, occupied) }
}

/// What serves stands still, and something is there beside it.
pub(super) fn bringing_back(database: &TestDatabase) -> Check<ReconcileInstance> {
    let reconcile = ReconcileInstance { instance: INSTANCE, node_id: NODE };
    Check { leftovers: |_| Vec::new(), while_waiting: report, ..check(database, reconcile, drifted) }
}

/// What serves is gone, and is launched again by a run that this one starts.
pub(super) fn launching_again(database: &TestDatabase) -> Check<ReconcileInstance> {
    let reconcile = ReconcileInstance { instance: INSTANCE, node_id: NODE };
    Check { while_waiting: report, ..check(database, reconcile, vanished) }
}

pub(super) fn drifted(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "running", true);
    let ports = r#"update app_instance_releases set ports = '{ "http": 30000 }' where standing = 'serving'"#;
    wait_for(run(engine, ports));
    wait_for(run(
        engine,
        r#"update nodes set status = 'active', report = '{ "workloads": [
            { "instance_id": "00000000-0000-0000-0000-000000000019", "member": "main", "generation": 2, "state": "exited",
              "health": "unknown", "usage": { "cpu_milliseconds": 0, "memory_bytes": 0 } },
            { "instance_id": "00000000-0000-0000-0000-000000000019", "member": "main", "generation": 1, "state": "running",
              "health": "unknown", "usage": { "cpu_milliseconds": 0, "memory_bytes": 0 } }] }'"#,
    ));
    env
}

fn vanished(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "running", true);
    wait_for(run(engine, r#"update nodes set status = 'active', report = '{ "workloads": [] }'"#));
    env
}

fn trusting(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "requested", false);
    give_key(engine);
    env
}

/// Its node has the key.
fn trusted(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "running", true);
    give_key(engine);
    wait_for(run(
        engine,
        "insert into ssh_trusts (instance_id, node_id, credential_id) values
         ('00000000-0000-0000-0000-000000000019', '00000000-0000-0000-0000-000000000017',
          '00000000-0000-0000-0000-000000000024')",
    ));
    env
}

/// The instance was given a key by which somebody logs in to set it up.
fn give_key(engine: &Engine) {
    let key = "insert into access_credentials (id, org_id, project_id, name, kind, sealed, public_key, created_by)
        select '00000000-0000-0000-0000-000000000024', org_id, project_id, 'login', 'ssh_key', 'sealed', 'ssh-ed25519 AAAA',
            created_by from app_instances on conflict do nothing";
    wait_for(run(engine, key));
    wait_for(run(
        engine,
        r#"update app_instances
           set credentials = '{ "bootstrap_access_credential": "00000000-0000-0000-0000-000000000024" }'"#,
    ));
}

fn occupied(engine: &Engine) -> Arc<Env> {
    let env = begin_anew(engine, "running", true);
    wait_for(run(engine, "update allocations set status = 'releasing', released_at = null"));
    env
}

/// The node goes on reporting.
fn report(engine: Engine, _: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move { run(&engine, "update nodes set report_sequence = report_sequence + 2").await })
}

/// Time passes once nothing stands there any more.
fn until_it_is_gone(engine: Engine, _: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let passes = "update engine.test_clock set ahead = ahead + interval '1 second'
            where not exists (select 1 from app_instances where status <> 'decommissioned')";
        run(&engine, passes).await;
        engine.wake();
    })
}

pub(super) async fn run(engine: &Engine, statement: &'static str) {
    sqlx::query(statement).execute(engine.pool().bare()).await.unwrap();
}
