//! Deploying and decommissioning survive being struck anywhere: crashed at each write, failed at each effect, on the way
//! there and on the way back. A node answers all the while.

use std::sync::Arc;
use std::time::Duration;

use activities::{Env, TaskSigners};
use clients::seal::Sealer;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use node_protocol::{Evidence, Key, Launched, Outcome, Output, Signed, Task};
use serde_json::json;
use sqlx::PgPool;
use store::app_instance_artifacts::{self, Standing, UsedArtifact};
use store::app_instance_releases::{self, Release};
use store::app_instances::{self, NewAppInstance};
use store::node_tasks::{self, NodeTask};
use store::{allocations, nodes, organizations, projects};
use uuid::Uuid;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;

use crate::support::database::TestDatabase;
use crate::support::docker::PORT;
use crate::support::platform::profile;

const ORG: Uuid = Uuid::from_u128(0xA);
const PROJECT: Uuid = Uuid::from_u128(1);
const NODE: Uuid = Uuid::from_u128(0x17);
const ALLOCATION: Uuid = Uuid::from_u128(0x18);
const INSTANCE: Uuid = Uuid::from_u128(0x19);
/// Thirty-two bytes, the same in every process of the story.
const SEED: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n";
const SEALING: &str = "story AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test(flavor = "multi_thread")]
async fn deploying_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DeployInstance { instance: INSTANCE, generation: 1 },
        fresh_env: |engine| begin_anew(engine, "requested"),
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decommissioning_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DecommissionInstance { instance: INSTANCE, generation: 2 },
        fresh_env: |engine| begin_anew(engine, "running"),
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

async fn furnish(pool: &PgPool) {
    let key = Key::from_pem(SEED).unwrap();
    let mut tx = pool.begin().await.unwrap();
    organizations::ensure(&mut tx, ORG, "demo", "demo").await.unwrap();
    projects::ensure(&mut tx, PROJECT, ORG, "example", "example").await.unwrap();
    let new = nodes::NewNode {
        id: NODE,
        name: "gpu-1",
        enrolment_hash: b"hash",
        enrolment_lives: chrono::TimeDelta::hours(1),
        created_by: Uuid::nil(),
    };
    nodes::insert(&mut tx, &new).await.unwrap();
    let enrolment = nodes::Enrolment {
        key_id: &key.id(),
        public_key: &key.public().to_pem().unwrap(),
        address: "127.0.0.1",
        driver: "simulated",
        agent_version: "test",
        inventory: &json!({}),
    };
    nodes::enrol(&mut tx, b"hash", &enrolment).await.unwrap().unwrap();
    let new = allocations::NewAllocation {
        id: ALLOCATION,
        org_id: ORG,
        project_id: PROJECT,
        node_id: NODE,
        shape: domain::CapacityShape::GpuSlice,
        sku: "cpu",
        accelerator: None,
        gpu_count: 0,
        cpu_cores: 1,
        memory_gib: 1,
        created_by: Uuid::nil(),
        correlation_id: "c",
    };
    allocations::insert(&mut tx, &new).await.unwrap();
    tx.commit().await.unwrap();
}

/// The instance as if nothing had happened yet, after a look at what the run before left; and a node that answers.
fn begin_anew(engine: &Engine, status: &'static str) -> Arc<Env> {
    let pool = engine.pool().clone();
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async {
            nothing_is_left(&pool).await;
            reset(&pool, status).await;
        });
    });
    tokio::spawn(answer(engine.clone()));
    let sealer = Sealer::from_lines(SEALING).unwrap();
    Arc::new(Env::new(engine.clone()).with_signers(TaskSigners::new(sealer)))
}

/// A failed or ended instance holds nothing; one that runs holds one of each.
async fn nothing_is_left(pool: &PgPool) {
    let status: Option<String> = sqlx::query_scalar("select status from app_instances where id = $1")
        .bind(INSTANCE)
        .fetch_optional(pool)
        .await
        .unwrap();
    let Some(status) = status else { return };
    let held: Vec<String> = sqlx::query_scalar(
        "select kind || ' ' || sum(quantity) from resource_ledger where instance_id = $1
         group by kind, resource having sum(quantity) <> 0 order by kind",
    )
    .bind(INSTANCE)
    .fetch_all(pool)
    .await
    .unwrap();
    let expected: &[&str] = match status.as_str() {
        "running" => &["cpu_core 1", "memory_gib 1", "port 1", "workload 1"],
        "failed" | "decommissioned" => &[],
        other => panic!("the run left the instance {other}"),
    };
    assert_eq!(held, expected, "{status}");
    let open: i64 = sqlx::query_scalar("select count(*) from node_tasks where finished_at is null")
        .fetch_one(pool)
        .await
        .unwrap();
    assert_eq!(open, 0, "no task is left open");
}

async fn reset(pool: &PgPool, status: &str) {
    let mut tx = pool.begin().await.unwrap();
    for statement in [
        "alter table resource_ledger disable trigger all",
        "alter table teardown_receipts disable trigger all",
        "delete from resource_ledger",
        "delete from teardown_receipts",
        "delete from node_tasks",
        "delete from app_instance_artifacts",
        "delete from app_instance_releases",
        "delete from app_instances",
    ] {
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
    }
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
    let digest = format!("sha256:{}", "a".repeat(64));
    let image =
        UsedArtifact { name: "runtime".into(), artifact_id: Uuid::nil(), digest, repository: "hello".into() };
    app_instance_artifacts::set(&mut tx, INSTANCE, Standing::Target, &[image]).await.unwrap();
    let release = Release { version: "1.0.0".into(), generation: 1, profile: profile(PORT, 5) };
    app_instance_releases::set(&mut tx, INSTANCE, Standing::Target, &release).await.unwrap();
    tx.commit().await.unwrap();
}

/// A node that does at once what it is asked, until the engine is closed.
async fn answer(engine: Engine) {
    while let Ok(mut tx) = engine.pool().begin().await {
        let lease = chrono::TimeDelta::minutes(1);
        if let Ok(Some(task)) = node_tasks::hand_out(&mut tx, NODE, lease).await {
            let outcome = outcome(&task);
            let result = serde_json::to_value(&outcome).unwrap();
            node_tasks::finish(&mut tx, NODE, task.id, outcome.status(), &result).await.unwrap();
            if let (Some(run), Some(signal)) = (task.run_id, &task.signal) {
                let _ = engine.signal(&mut tx, run, signal, &task.id.to_string(), &result).await;
            }
            let _ = tx.commit().await;
            engine.wake();
        } else {
            let _ = tx.rollback().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn outcome(task: &NodeTask) -> Outcome {
    let output = match Task::read(&task.kind, &task.input).unwrap() {
        Task::OciLaunch(launch) => Output::Launched {
            members: vec![Launched {
                member: launch.workload.member.clone(),
                container_id: "c".into(),
                digest: launch.workload.image.digest.clone(),
                ports: launch.workload.ports.iter().map(|port| (port.name.clone(), port.host)).collect(),
            }],
        },
        Task::OciRemove(remove) => {
            let evidence = Evidence {
                node_id: NODE,
                instance_id: remove.instance_id,
                task_id: task.id,
                generations: remove.generations,
                driver: "simulated".into(),
                removed: vec![],
                remaining: vec![],
                observed_at: task.created_at,
            };
            Output::Removed { evidence: Signed::sign(&evidence, &Key::from_pem(SEED).unwrap()).unwrap() }
        }
        Task::DiagHealthProbe(_) => Output::Healthy { tries: 1 },
        other => panic!("nobody asks a node for {other:?}"),
    };
    Outcome::Succeeded { output }
}
