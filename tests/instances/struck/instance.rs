//! The instance that every run begins with, and what a run may leave of it.

use std::sync::Arc;
use std::time::Duration;

use activities::{Env, TaskSigners};
use clients::seal::Sealer;
use domain::PermissionSet;
use engine::Engine;
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use store::app_instance_artifacts::{self, Standing, UsedArtifact};
use store::app_instance_releases::{self, Release};
use store::app_instances::{self, NewAppInstance};
use store::resource_ledger::{self as ledger, Holder, Kind};
use store::service_accounts::{self, NewServiceAccount};
use uuid::Uuid;

use super::catalog::REGISTRY;
use super::node::answer;
use super::{ACCOUNT, ALLOCATION, INSTANCE, NODE, ORG, PROJECT, VERSIONS};
use crate::lifecycle::wait_for;
use crate::support::docker::PORT;
use crate::support::platform::profile;
use crate::support::registry::shelve;

/// The same in every process of the story.
const SEALING: &str = "story AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The instance as if nothing had happened yet, after a look at what the run before left; and a node that answers. One that
/// serves holds what it needs, and served the other version before.
pub(super) fn begin_anew(engine: &Engine, status: &'static str, serves: bool) -> Arc<Env> {
    let pool = engine.pool().bare().clone();
    wait_for(async {
        nothing_is_left(&pool).await;
        reset(&pool, status, serves).await;
    });
    with_node(engine)
}

/// No instance at all yet.
pub(super) fn begin_empty(engine: &Engine) -> Arc<Env> {
    wait_for(wipe(engine.pool().bare()));
    with_node(engine)
}

fn with_node(engine: &Engine) -> Arc<Env> {
    tokio::spawn(answer(engine.clone()));
    engine.also_promises(activities::promises::of_the_platform);
    let sealer = Sealer::from_lines(SEALING).unwrap();
    let registry = REGISTRY.get().unwrap().clone();
    Arc::new(Env::new(engine.clone()).with_signers(TaskSigners::new(sealer)).with_registry(registry))
}

/// An instance that ended holds nothing, and neither does one that failed, unless no run began to give back what it had served
/// with; one that runs holds one of each.
async fn nothing_is_left(pool: &PgPool) {
    let status: Option<String> = sqlx::query_scalar("select status from app_instances where id = $1")
        .bind(INSTANCE)
        .fetch_optional(pool)
        .await
        .unwrap();
    let Some(status) = status else { return };
    let owed = "select exists (select from teardown_debts where instance_id = $1 and collected_at is null)
        or (select last_operation ? 'left_behind' from app_instances where id = $1)";
    if sqlx::query_scalar::<_, Option<bool>>(owed).bind(INSTANCE).fetch_one(pool).await.unwrap() == Some(true)
    {
        // A node that did not answer still has it, and it is on the books; the checker of the promises knows.
        return;
    }
    let held: Vec<String> = sqlx::query_scalar(
        "select kind || ' ' || sum(quantity) from resource_ledger where instance_id = $1
         group by kind, resource having sum(quantity) <> 0 order by kind",
    )
    .bind(INSTANCE)
    .fetch_all(pool)
    .await
    .unwrap();
    let untouched = "select exists (select from resource_ledger where instance_id = $1)
        and not exists (select from resource_ledger where instance_id = $1 and run_id <> $2)";
    let untouched: bool =
        sqlx::query_scalar(untouched).bind(INSTANCE).bind(Uuid::nil()).fetch_one(pool).await.unwrap();
    let expected: &[&str] = match status.as_str() {
        status if status == "running" || (status == "failed" && untouched) => {
            &["cpu_core 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"]
        }
        "failed" | "decommissioned" => &[],
        other => panic!("the run left the instance {other}"),
    };
    assert_eq!(held, expected, "{status}");
    // That a key opens it no more, a node learns in its own time.
    let open =
        "select count(*) from node_tasks where finished_at is null and kind <> 'ssh.install_authorized_keys'";
    let open: i64 = sqlx::query_scalar(open).fetch_one(pool).await.unwrap();
    assert_eq!(open, 0, "no task is left open");
    let repeated: Vec<String> = sqlx::query_scalar(
        "select type from outbox where correlation_id <> 'c-before' group by type, project_id having count(*) > 1 order by 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    assert_eq!(repeated, [""; 0], "whatever struck, each thing is told once");
}

/// What the run has made of the world, besides the instance's own state: what it took or gave back, and whatever of its means is
/// still good for something. A run that turned back leaves nothing of it.
pub(super) fn left(env: &Env) -> Vec<String> {
    wait_for(removals_end(env.pool().bare()));
    let left = sqlx::query_scalar(
        "select format('%s %s', kind, sum(quantity)) from resource_ledger where run_id <> $1
             group by kind, resource having sum(quantity) <> 0
         union all select 'open task ' || kind from node_tasks where finished_at is null and kind <> 'ssh.install_authorized_keys'
         union all select 'a key that opens the node' from ssh_trusts
         union all select 'good pull credential' from registry_credentials where revoked_at is null
         union all select 'good key' from service_account_keys where revoked_at is null
         union all select 'target ' || name from app_instance_artifacts a where standing = 'target'
             and exists (select 1 from app_instance_releases r where r.instance_id = a.instance_id and standing = 'serving')
         -- A run that failed has told so, and what it told on its way; one that did its work tells the same each time.
         union all select format('told %s %s', type, count(*)) from outbox
             where correlation_id <> 'c-before' and not exists (select 1 from outbox where type = 'apps.instance.failed') group by type
         order by 1",
    );
    wait_for(left.bind(Uuid::nil()).fetch_all(env.pool().bare())).unwrap()
}

/// A run that fails right after it asked for a removal waits for no answer, and the node does it in its own time.
async fn removals_end(pool: &PgPool) {
    let open = "select exists (select from node_tasks where finished_at is null and kind = 'oci.remove')";
    for _ in 0..500 {
        if !sqlx::query_scalar::<_, bool>(open).fetch_one(pool).await.unwrap() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The node of the run before may still be at work, and lock in another order; then whoever was chosen tries again.
async fn wipe(pool: &PgPool) {
    for _ in 0..10 {
        match try_to_wipe(pool).await {
            Ok(()) => return,
            Err(error) => {
                let code = error.as_database_error().and_then(|error| error.code());
                assert_eq!(code.as_deref(), Some("40P01"), "{error}");
            }
        }
    }
    panic!("ten deadlocks in a row");
}

async fn try_to_wipe(pool: &PgPool) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    for statement in [
        "alter table resource_ledger disable trigger all",
        "alter table teardown_receipts disable trigger all",
        "delete from resource_ledger",
        "delete from teardown_receipts",
        "delete from teardown_debts",
        "delete from node_tasks",
        "delete from app_instance_artifacts",
        "delete from app_instance_releases",
        "delete from ssh_trusts",
        "delete from app_instances",
        "delete from pull_intents",
        "delete from registry_credentials",
        "delete from service_account_keys",
        "delete from service_accounts",
        "delete from outbox",
    ] {
        sqlx::query(statement).execute(&mut *tx).await?;
    }
    tx.commit().await
}

async fn reset(pool: &PgPool, status: &str, serves: bool) {
    wipe(pool).await;
    let mut tx = pool.begin().await.unwrap();
    let resources = json!({ "gpu_count": 0, "cpu_cores": 1, "memory_gib": 1, "host_port": null });
    let new = NewAppInstance {
        id: INSTANCE,
        org_id: ORG,
        project_id: PROJECT,
        app_slug: "hello",
        version: "1.0.0",
        display_name: "hello",
        operating_mode: "tenant_dedicated",
        control_plane_scope: "project",
        runtime_backend: "launchable_oci",
        allocation_id: Some(ALLOCATION),
        placement_intent: &json!({}),
        config: &json!({}),
        asked_config: &json!({}),
        resources: &resources,
        variant: None,
        packages: &json!([]),
        credentials: &json!({}),
        correlation_id: "c",
        created_by: Uuid::nil(),
    };
    app_instances::insert(&mut tx, &new).await.unwrap();
    sqlx::query("update app_instances set status = $2 where id = $1")
        .bind(INSTANCE)
        .bind(status)
        .execute(&mut *tx)
        .await
        .unwrap();
    if serves {
        stands(&mut tx, Standing::Serving, VERSIONS[0], 2).await;
        stands(&mut tx, Standing::Previous, VERSIONS[1], 1).await;
        holds(&mut tx).await;
        let ran = "insert into outbox (id, project_id, org_id, type, subject, data, correlation_id)
                   values (gen_random_uuid(), $1, $2, 'apps.instance.running', $3::text, '{}', 'c-before')";
        let ran = sqlx::query(ran).bind(PROJECT).bind(ORG).bind(INSTANCE.to_string());
        ran.execute(&mut *tx).await.unwrap();
    } else {
        stands(&mut tx, Standing::Target, VERSIONS[0], 1).await;
    }
    tx.commit().await.unwrap();
}

async fn stands(
    conn: &mut PgConnection,
    standing: Standing,
    (number, artifact_id, image): (&str, Uuid, &str),
    generation: i64,
) {
    let image = UsedArtifact {
        name: "runtime".into(),
        artifact_id,
        digest: shelve(image).to_string(),
        repository: "gpuaas/apps/example/hello".into(),
    };
    app_instance_artifacts::set(conn, INSTANCE, standing, &[image]).await.unwrap();
    let release = Release {
        version: number.into(),
        generation,
        profile: profile(PORT, 5),
        config: json!({}),
        resources: json!({ "gpu_count": 0, "cpu_cores": 1, "memory_gib": 1, "host_port": null }),
        ports: json!({}),
        gpus: Vec::new(),
    };
    app_instance_releases::set(conn, INSTANCE, standing, &release).await.unwrap();
}

/// What a workload of the second generation holds, by a run that ended well.
async fn holds(conn: &mut PgConnection) {
    let run = "insert into engine.run (id, kind, version, project_id, correlation_id, input, state, finished_at)
               values ($1, 'instance.deploy', 1, $2, 'c-before', '{}', 'succeeded', engine.now()) on conflict do nothing";
    sqlx::query(run).bind(Uuid::nil()).bind(PROJECT).execute(&mut *conn).await.unwrap();
    let account = NewServiceAccount {
        id: ACCOUNT,
        org_id: ORG,
        project_id: PROJECT,
        slug: "app",
        name: "hello",
        description: None,
        keys: PermissionSet::EMPTY,
        created_by: Uuid::nil(),
    };
    service_accounts::insert(conn, &account).await.unwrap();
    app_instances::set_account(conn, INSTANCE, Some(ACCOUNT)).await.unwrap();
    sqlx::query("update app_instances set generation = 3 where id = $1")
        .bind(INSTANCE)
        .execute(&mut *conn)
        .await
        .unwrap();
    let run_id = Uuid::nil();
    let who = Holder { org_id: ORG, project_id: PROJECT, instance_id: INSTANCE, run_id, correlation_id: "c" };
    let from = ledger::allocation(ALLOCATION);
    for (kind, of) in [
        (Kind::CpuCore, from.clone()),
        (Kind::MemoryGib, from),
        (Kind::Port, ledger::port_of(NODE, 30_000)),
        (Kind::Workload, ledger::workload_on(NODE, 2)),
        (Kind::ServiceAccount, ledger::own(ACCOUNT)),
    ] {
        ledger::post(conn, who, kind, &of, 1).await.unwrap();
    }
}
