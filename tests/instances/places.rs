//! Where an instance may stand: alone where its version needs the node alone, and on ports that nobody else is found on.

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

/// A version that needs its node alone.
async fn solitary(platform: &Platform) -> String {
    let more =
        json!({ "runtime_profile": profile(PORT, 30), "compatibility": { "requires_exclusive_node": true } });
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

/// The predicates that the placement broke.
fn broken(refused: &Value) -> Vec<&str> {
    let predicates = refused["details"]["matrix"][0]["predicates"].as_array().expect("a matrix");
    let broken = predicates.iter().filter(|one| one["holds"] == false);
    broken.map(|one| one["name"].as_str().expect("a name")).collect()
}

async fn set(platform: &Platform, id: Uuid, status: &str, failed_during: Option<&str>) {
    sqlx::query("update app_instances set status = $2, failed_during = $3 where id = $1")
        .bind(id)
        .bind(status)
        .bind(failed_during)
        .execute(&platform.story.pool)
        .await
        .unwrap();
}

fn asking(number: &str) -> Value {
    json!({ "app_slug": "hello", "version": number, "display_name": "hello" })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_needs_its_node_alone_gets_no_neighbour_later() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (alone, other) = (solitary(&platform).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &alone, 0).await;
    platform.succeeds(run).await;
    let refused = platform.create(asking(&other)).await.with(422);
    assert_eq!(
        (&refused["code"], broken(&refused)),
        (&json!("placement_unsatisfiable"), vec!["shared_node"])
    );
    let refused = platform.create(asking(&alone)).await.with(422);
    assert_eq!(broken(&refused), ["exclusive_node", "shared_node"]);
    // It is no neighbour of itself.
    let plan = project(&format!("/app-instances/{id}/plan"));
    let asked = json!({ "action": "upgrade", "target_version": other });
    platform.http.acting("operator").post(&plan, asked).await.with(200);
    platform.decommission(id).await;
    let (id, run) = platform.deploy_version(allocation, &other, 0).await;
    platform.succeeds(run).await;
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}

/// Much may change between the question and the taking.
#[tokio::test(flavor = "multi_thread")]
async fn whether_a_node_is_shared_is_looked_at_again_when_its_share_is_taken() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (alone, other) = (solitary(&platform).await, platform.version(&profile(PORT, 30)).await);
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (first, run) = platform.deploy_version(allocation, &alone, 0).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    set(&platform, first, "requested", None).await;
    let (second, run) = platform.deploy_version(allocation, &other, 0).await;
    platform.succeeds(run).await;
    set(&platform, first, "failed", Some("deploying")).await;
    let tried = platform.act(first, "retry", json!({})).await;
    assert_eq!(tried["status_reason"]["code"], "insufficient_capacity");
    let message = tried["status_reason"]["message"].as_str().unwrap();
    assert!(message.contains("exclusive_node: 1 others"), "{message}");
    platform.decommission(second).await;
    assert_eq!(platform.act(first, "retry", json!({})).await["status"], "running");
    agent.end().await;
    platform.end().await;
}

/// The ports that launches on the node asked for, in order.
async fn ports(platform: &Platform) -> Vec<i64> {
    let all = "select (input #>> '{workload,ports,0,host}')::bigint from node_tasks where kind = 'oci.launch' order by id";
    sqlx::query_scalar(all).fetch_all(&platform.story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_somebody_unknown_has_is_passed_over_the_next_time() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::PortUnavailable));
    let (first, run) = platform.deploy(allocation, &profile(PORT, 30), 0).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(first).await["status_reason"]["code"], "port_unavailable");
    platform.deployed(allocation, &profile(PORT, 30), 0).await;
    assert_eq!(platform.act(first, "retry", json!({})).await["status"], "running");
    assert_eq!(ports(&platform).await, [30_000, 30_001, 30_002]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_was_asked_for_is_the_first_ones_and_nobody_elses() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let mut two = profile(PORT, 30);
    two["ports"] = json!([{ "container": PORT, "name": "web" }, { "container": 9090, "name": "metrics" }]);
    let number = platform.version(&two).await;
    let asked = json!({
        "app_slug": "hello", "version": number, "display_name": "hello",
        "placement_intent": { "allocation_id": allocation }, "resources": { "host_port": 30_005 },
    });
    let made = platform.create(asked.clone()).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    let access =
        platform.http.get(&project(&format!("/app-instances/{}/access", id_of(&made)))).await.with(200);
    let told: Vec<&str> = access["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["private_address"].as_str())
        .collect();
    assert_eq!(told, ["127.0.0.1:30000", "127.0.0.1:30005"], "{access:#}");
    let refused = platform.create(asked.clone()).await.with(422);
    assert_eq!(broken(&refused), ["host_port"]);
    for wrong in [0, 80, 1023, 65_536] {
        let mut asked = asked.clone();
        asked["resources"]["host_port"] = json!(wrong);
        platform.create(asked).await.with(400);
    }
    agent.end().await;
    platform.end().await;
}

/// Allocations that were given back long ago, before those that are there now.
async fn given_back(platform: &Platform, like: Uuid, count: i32) {
    let all = "insert into allocations (id, org_id, project_id, node_id, capacity_shape, sku, gpu_count, gpus, cpu_cores,
                   memory_gib, status, created_by, correlation_id)
               select ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, org_id, project_id, node_id,
                   capacity_shape, sku, 0, '{}', cpu_cores, memory_gib, 'released', created_by, correlation_id
               from allocations, generate_series(1, $2) number where id = $1";
    sqlx::query(all).bind(like).bind(count).execute(&platform.story.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn however_much_a_project_gave_back_it_deploys_on_what_it_has() {
    let platform = Platform::new().await;
    let (agent, leaving) = platform.node("gpu-1", &Simulated::new(), 1).await;
    let number = platform.version(&profile(PORT, 30)).await;
    given_back(&platform, leaving, 1000).await;
    let leaves = "update allocations set status = 'release_failed' where id = $1";
    sqlx::query(leaves).bind(leaving).execute(&platform.story.pool).await.unwrap();
    let refused = platform.create(asking(&number)).await.with(422);
    let matrix = refused["details"]["matrix"].as_array().unwrap();
    assert_eq!((matrix.len(), broken(&refused)), (1, vec!["allocation_status"]), "{refused:#}");
    assert_eq!(matrix[0]["allocation_id"], json!(leaving));
    let stays = "update allocations set status = 'active' where id = $1";
    sqlx::query(stays).bind(leaving).execute(&platform.story.pool).await.unwrap();
    let made = platform.create(asking(&number)).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    agent.end().await;
    platform.end().await;
}
