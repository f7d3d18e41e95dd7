//! Deploying: an instance runs only when its workload serves, and one that does not come to run leaves nothing.

use agent::{Docker, Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::json;

use crate::http::project;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_placed_launched_found_healthy_and_running() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 2).await;
    let instance = platform.instance(id).await;
    assert_eq!((&instance["status"], &instance["status_reason"]), (&json!("running"), &json!(null)));
    let digest = shelve("1.0.0").to_string();
    assert_eq!(instance["artifacts"][0]["digest"], digest, "what was frozen for the version");
    assert!(instance["operator_service_account_id"].is_string(), "it has an identity of its own");
    assert_eq!(instance["tenant_boundary_mode"], "project_isolated");
    let held = ["cpu_core 1", "gpu 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held);
    assert_eq!(platform.events(id).await, ["requested", "deploying", "running"]);
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    assert_eq!(access["endpoints"][0]["private_address"], "127.0.0.1:30000");
    assert_eq!(driver.launches(), 1);
    agent.end().await;
    platform.end().await;
}

/// The first by name is another.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_images_a_node_pulls_and_starts_the_runtime() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let slots = json!([{ "name": "assets" }, { "name": "runtime" }]);
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30), "artifacts": slots })).await;
    let [assets, runtime] = ["the assets", "the runtime"].map(|words| shelve(words).to_string());
    platform.artifact_named(&number, "assets", &assets).await;
    platform.artifact_named(&number, "runtime", &runtime).await;
    platform.roll_out(&number).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let told: (String, String) = sqlx::query_as(
        "select t.input #>> '{workload,image,digest}', i.digest from node_tasks t
         cross join pull_intents i where t.instance_id = $1 and t.kind = 'oci.launch'",
    )
    .bind(id)
    .fetch_one(&platform.story.pool)
    .await
    .unwrap();
    assert_eq!(told, (runtime.clone(), runtime));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_fails_on_the_node_says_why_and_leaves_nothing() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let instance = platform.instance(id).await;
    assert_eq!(instance["status"], "failed");
    let reason = &instance["status_reason"];
    assert_eq!((&reason["code"], &reason["kind"]), (&json!("image_pull_failed"), &json!("blocked")));
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(platform.events(id).await, ["requested", "deploying", "failed"]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_vanishes_before_it_serves_is_a_readiness_timeout() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Vanish);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_place_is_gone_says_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let mut hold = platform.story.pool.begin().await.unwrap();
    sqlx::query("select 1 from allocations where id = $1 for no key update")
        .bind(allocation)
        .execute(&mut *hold)
        .await
        .unwrap();
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    let stands = "select exists (select 1 from engine.step where run_id = $1 and name = $2[1]) and exists (
            select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
    platform.story.until_true("the run is about to place it", stands, run, &["reserve_placement"]).await;
    for gone in [
        "update app_instances set allocation_id = null where allocation_id = $1",
        "delete from allocations where id = $1",
    ] {
        sqlx::query(gone).bind(allocation).execute(&mut *hold).await.unwrap();
    }
    hold.commit().await.unwrap();
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(
        (&reason["code"], &reason["message"]),
        (&json!("allocation_released"), &json!("the allocation is gone"))
    );
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_only_those_that_fit_run() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let asked = (0..5).map(|_| {
        let body = json!({
            "app_slug": "hello", "version": number, "display_name": "hello", "resources": { "gpu_count": 2 },
        });
        platform.create(body)
    });
    let (mut running, mut refused) = (0, 0);
    for answer in futures::future::join_all(asked).await {
        if answer.status == 422 {
            refused += 1;
            continue;
        }
        let made = answer.with(202);
        if platform.story.ends(id_of(&made["workflow"])).await == RunState::Succeeded {
            running += 1;
            continue;
        }
        let reason = &platform.instance(id_of(&made)).await["status_reason"];
        assert_eq!(reason["code"], "insufficient_capacity");
        let message = reason["message"].as_str().unwrap();
        assert!(message.contains("free_gpu_count: 0 where at least 2 is required"), "{message}");
        refused += 1;
    }
    assert_eq!((running, refused), (2, 3), "four GPUs carry two instances, whoever comes first");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_image_is_pulled_by_digest_serves_and_is_taken_away_without_a_trace() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let number = platform.real_version(&engine, &engine.stage.digest, &profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    assert_eq!(platform.tasks(id).await, ["oci.launch"], "who serves at once is not asked whether it does");
    let page = reqwest::get(format!("{}/index.html", platform.url(id).await)).await.unwrap();
    assert_eq!(page.text().await.unwrap(), "welcome");
    assert_eq!(engine.leftovers().len(), 2, "a container and a network: {:?}", engine.leftovers());
    let digest = platform.instance(id).await["artifacts"][0]["digest"].as_str().unwrap().to_owned();
    let container = engine.leftovers().remove(0);
    let image = engine.docker(&["inspect", "--format", "{{.Config.Image}}", &container]).unwrap();
    assert!(image.ends_with(&format!("@{digest}")), "{image}");
    let env = engine.docker(&["inspect", "--format", "{{.Config.Env}}", &container]).unwrap();
    assert!(env.contains(&format!("GPUAAS_APP_INSTANCE_ID={id}")), "it knows who it is: {env}");
    let ended = platform.decommission(id).await;
    assert_eq!(
        (&ended["status"], &ended["workflow"]["status"]),
        (&json!("decommissioned"), &json!("succeeded"))
    );
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    let good: i64 = sqlx::query_scalar(
        "select count(*) from registry_credentials c join pull_intents p using (id) where c.revoked_at is null",
    )
    .fetch_one(&platform.story.pool)
    .await
    .unwrap();
    assert_eq!(good, 0, "nobody can pull with what the node was given");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_container_that_does_not_serve_is_taken_away_again() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    // It listens on another port than the one that is asked.
    let number = platform.real_version(&engine, &engine.stage.digest, &profile(PORT + 1, 1)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "readiness_timeout");
    assert_eq!(platform.tasks(id).await, ["oci.launch", "diag.health_probe", "oci.remove"]);
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

/// Before, the first failure stood for good, and no retry ever asked the node again.
#[tokio::test(flavor = "multi_thread")]
async fn a_removal_that_fails_on_the_way_back_is_asked_for_again() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    driver.will_keep(3);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(
        platform.story.ends(run).await,
        RunState::Compensated,
        "{}",
        platform.story.describe(run).await
    );
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "image_pull_failed");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_launch_carries_is_nowhere_to_be_read() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let readable: String = sqlx::query_scalar(
        "select concat(input::text, coalesce(result::text, ''), coalesce(progress::text, ''))
         from node_tasks where instance_id = $1 and kind = 'oci.launch' and sealed is not null",
    )
    .bind(id)
    .fetch_one(&platform.story.pool)
    .await
    .unwrap();
    assert!(!readable.contains("PRIVATE KEY") && !readable.contains("password"), "{readable}");
    driver.release(1);
    platform.succeeds(run).await;
    let kept: i64 = sqlx::query_scalar("select count(*) from node_tasks where sealed is not null")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(kept, 0, "what was delivered is not kept");
    agent.end().await;
    platform.end().await;
}
