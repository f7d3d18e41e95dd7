//! A GPU is one instance's at a time: which ones an instance has is decided by the platform and said to the engine by name.

use std::collections::BTreeSet;
use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;

/// The GPUs that the instance's newest workload was launched with, as its node was told.
async fn launched_with(platform: &Platform, id: Uuid) -> Vec<String> {
    let told: Value = sqlx::query_scalar(
        "select coalesce(input #> '{workload,gpus}', '[]') from node_tasks
         where instance_id = $1 and kind = 'oci.launch' order by id desc limit 1",
    )
    .bind(id)
    .fetch_one(&platform.story.pool)
    .await
    .unwrap();
    serde_json::from_value(told).unwrap()
}

async fn deployed(platform: &Platform, allocation: Uuid, number: &str, gpus: u32) -> (Uuid, Vec<String>) {
    let (id, run) = platform.deploy_version(allocation, number, gpus).await;
    platform.succeeds(run).await;
    (id, launched_with(platform, id).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_instances_share_a_gpu_whichever_allocation_they_stand_on() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, first) = platform.node("gpu-1", &driver, 4).await;
    let slice = json!({
        "project_id": EXAMPLE, "node_id": agent.id, "capacity_shape": "gpu_slice", "gpu_count": 2, "cpu_cores": 4,
        "memory_gib": 8,
    });
    let second = id_of(&platform.http.post(&admin("/allocations"), slice).await.with(201));
    let number = platform.version(&profile(PORT, 30)).await;
    let (one, of_one) = deployed(&platform, first, &number, 2).await;
    let (_, of_two) = deployed(&platform, first, &number, 1).await;
    let (_, of_three) = deployed(&platform, second, &number, 2).await;
    assert_eq!((of_one.len(), of_two.len(), of_three.len()), (2, 1, 2));
    let all: BTreeSet<&String> = of_one.iter().chain(&of_two).chain(&of_three).collect();
    assert_eq!(all.len(), 5, "{of_one:?} {of_two:?} {of_three:?}");
    assert!(all.iter().all(|gpu| gpu.starts_with("GPU-")), "by what they are, not by their place: {all:?}");
    platform.decommission(one).await;
    let (_, again) = deployed(&platform, first, &number, 2).await;
    assert_eq!(again, of_one, "what was given back is given again");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_beside_the_old_one_takes_other_gpus_and_one_in_its_place_the_same() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, wide) = platform.node("gpu-1", &driver, 2).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, before) = deployed(&platform, wide, &old, 1).await;
    let upgraded = platform.act(id, "upgrade", json!({ "target_version": new })).await;
    assert_eq!(upgraded["last_operation"]["strategy"], "side_by_side", "{upgraded:#}");
    let beside = launched_with(&platform, id).await;
    assert_ne!(before, beside);
    // The other one is taken meanwhile, so the next change has only what the instance has.
    let (_, other) = deployed(&platform, wide, &old, 1).await;
    assert_eq!(other, before);
    let returned = platform.act(id, "rollback", json!({ "target_version": old })).await;
    assert_eq!(returned["last_operation"]["strategy"], "stop_then_start", "{returned:#}");
    assert_eq!(launched_with(&platform, id).await, beside);
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held);
    agent.end().await;
    platform.end().await;
}

/// The run of an upgrade whose node has begun the launch, after it stopped what served before.
async fn hangs_in_an_upgrade(platform: &Platform, driver: &Simulated, id: Uuid, number: &str) -> Uuid {
    driver.will(SimulatedFault::Hang);
    let path = project(&format!("/app-instances/{id}/upgrade"));
    let begun = platform.http.acting("operator").post(&path, json!({ "target_version": number })).await;
    while driver.to_come() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    id_of(&begun.with(202)["workflow"])
}

/// Nobody else is given what the old one may have to return to.
#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_version_in_the_old_ones_place_gives_back_what_it_does_not_need_once_that_is_gone() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 2).await;
    let wide = platform.version(&profile(PORT, 30)).await;
    let mut small = profile(PORT, 30);
    small["resources"] = json!({ "gpu_count": { "max": 1 } });
    let small = platform.version(&small).await;
    let (id, _) = deployed(&platform, allocation, &wide, 2).await;
    let gpus = async || platform.held(id).await.iter().filter(|held| *held == "gpu 1").count();

    let run = hangs_in_an_upgrade(&platform, &driver, id, &small).await;
    assert_eq!(gpus().await, 2, "the old one stands still and may return");
    let cancel = project(&format!("/workflows/{run}/cancel"));
    platform.http.acting("operator").post(&cancel, json!({})).await.with(202);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    assert_eq!((gpus().await, &platform.instance(id).await["status"]), (2, &json!("running")));

    let run = hangs_in_an_upgrade(&platform, &driver, id, &small).await;
    assert_eq!(gpus().await, 2);
    driver.release(1);
    platform.succeeds(run).await;
    assert_eq!((gpus().await, &platform.instance(id).await["status"]), (1, &json!("running")));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_gpus_are_counted_and_asked_of_no_engine() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 2).await;
    sqlx::query(
        r#"update nodes set inventory = jsonb_set(inventory, '{gpus}', (select jsonb_agg(gpu || '{"simulated": true}')
           from jsonb_array_elements(inventory -> 'gpus') gpu))"#,
    )
    .execute(&platform.story.pool)
    .await
    .unwrap();
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, told) = deployed(&platform, allocation, &number, 2).await;
    assert_eq!(told, Vec::<String>::new());
    assert_eq!(platform.held(id).await.iter().filter(|held| *held == "gpu 1").count(), 2);
    agent.end().await;
    platform.end().await;
}
