//! How an instance is, for as long as it runs: its node goes on asking it, and whoever looks at the instance sees what came of it.

use agent::{Docker, Simulated};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{admin, project};
use crate::support::agent::RunningAgent;
use crate::support::docker::{Engine, PORT};
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;

const REASON: &str =
    "select status_reason is not distinct from nullif(($2::text[])[1], '') from app_instances where id = $1";

async fn is_unwell(platform: &Platform, id: Uuid) {
    platform.story.until_true("it does not serve", REASON, id, &["readiness_timeout"]).await;
    let instance = platform.instance(id).await;
    let reason = &instance["status_reason"];
    assert_eq!(
        (&instance["status"], &reason["kind"]),
        (&json!("running"), &json!("blocked")),
        "{instance:#}"
    );
}

async fn is_well(platform: &Platform, id: Uuid) {
    platform.story.until_true("it serves again", REASON, id, &[""]).await;
    assert_eq!(seen(platform, id).await, ("healthy".to_owned(), "running".to_owned(), "healthy".to_owned()));
}

/// How its endpoint is, and its member: status and health.
async fn seen(platform: &Platform, id: Uuid) -> (String, String, String) {
    let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    let members = platform.http.get(&project(&format!("/app-instances/{id}/members"))).await.with(200);
    let member = &members["items"][0];
    (word(&access["endpoints"][0]["health"]), word(&member["status"]), word(&member["health"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_stops_serving_says_so_until_it_serves_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let healthy = ("healthy".to_owned(), "running".to_owned(), "healthy".to_owned());
    assert_eq!(seen(&platform, id).await, healthy, "known as soon as it runs");
    driver.falls_ill(id, true);
    is_unwell(&platform, id).await;
    assert_eq!(seen(&platform, id).await.0, "unhealthy");
    driver.falls_ill(id, false);
    is_well(&platform, id).await;
    assert_eq!(platform.events(id).await, ["requested", "deploying", "running"], "it ran all the while");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_was_seen_serving_is_believed_until_the_next_report() {
    let platform = Platform::new().await;
    let node = Node::enrol(&platform.http, "gpu-1").await;
    let share = json!({
        "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 0, "cpu_cores": 8,
        "memory_gib": 64,
    });
    let allocation = id_of(&platform.http.post(&admin("/allocations"), share).await.with(201));
    let workload = |of: Uuid, health: &str| {
        json!({
            "instance_id": of, "member": "main", "generation": 1, "state": "running", "health": health,
            "usage": { "cpu_milliseconds": 1, "memory_bytes": 1 },
        })
    };
    let neighbour = workload(Uuid::now_v7(), "healthy");
    node.beats(1, json!([neighbour])).await.with(200);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 0).await;
    node.launches(true).await;
    platform.succeeds(run).await;
    assert_eq!(platform.tasks(id).await, ["oci.launch"], "nobody asks it again");
    let healthy = ("healthy".to_owned(), "running".to_owned(), "healthy".to_owned());
    assert_eq!(seen(&platform, id).await, healthy, "known as soon as it runs");
    let kept = "select report -> 'workloads' @> $2 from nodes where id = $1";
    let kept: bool = sqlx::query_scalar(kept)
        .bind(node.id)
        .bind(json!([neighbour]))
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert!(kept, "what else runs there is known as before");
    node.beats(2, json!([workload(id, "unhealthy")])).await.with(200);
    assert_eq!(seen(&platform, id).await.0, "unhealthy");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_endpoint_that_dies_is_noticed_and_so_is_its_return_also_by_an_agent_that_starts_anew() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let mut writable = profile(PORT, 30);
    writable["read_only_root"] = json!(false);
    let number = platform.real_version(&engine, &engine.stage.digest, &writable).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    assert_eq!(seen(&platform, id).await.0, "healthy");
    let name = format!("gpuaas-{id}-main-g1");
    let moves = |from: &str, to: &str| {
        engine.docker(&["exec", "--user", "0", &name, "/bin/busybox", "mv", from, to]).unwrap();
    };
    moves("/www/index.html", "/www/gone");
    is_unwell(&platform, id).await;
    let folder = agent.kill().await;
    moves("/www/gone", "/www/index.html");
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    is_well(&platform, id).await;
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_ends_again_and_again_does_not_look_as_if_it_ran() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let mut writable = profile(PORT, 30);
    writable["read_only_root"] = json!(false);
    let image = engine.fragile().unwrap();
    let number = platform.real_version(&engine, &image, &writable).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    let inside = |user: &str, command: &[&str]| {
        let name = format!("gpuaas-{id}-main-g1");
        engine.docker(&[&["exec", "--user", user, &name, "/bin/busybox"], command].concat())
    };
    inside("0", &["touch", "/www/broken"]).unwrap();
    // What ends by itself its engine starts again; what Docker's client stops stays stopped.
    let _ = inside("65534", &["killall", "-9", "busybox"]);
    is_unwell(&platform, id).await;
    while seen(&platform, id).await
        != ("unhealthy".to_owned(), "restarting".to_owned(), "unhealthy".to_owned())
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_cannot_be_measured_does_not_keep_its_node_from_reporting() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let mut both = Vec::new();
    for _ in 0..2 {
        let (id, run) = platform.deploy_version(allocation, &number, 1).await;
        platform.succeeds(run).await;
        both.push(id);
    }
    for id in &both {
        driver.keeps_to_itself(*id);
    }
    driver.falls_ill(both[0], true);
    is_unwell(&platform, both[0]).await;
    agent.end().await;
    platform.end().await;
}
