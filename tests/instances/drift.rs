//! What a node has differs from what should be there: it is brought back, or told, and only by a run of the instance's own
//! that has looked for itself.

use agent::{Docker, Driver, Simulated, Told};
use engine::{RunState, Start};
use node_protocol::{ControlAction, Secrets, WorkloadState};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workflows::instance::reconcile::ReconcileInstance;
use workflows::reconcilers::drift::WatchDrift;

use super::nodes::watch;
use super::stacks::{stack, wish};
use crate::catalog::acts;
use crate::http::admin;
use crate::support::agent::RunningAgent;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;
use crate::support::registry::shelve;

/// A node, and an instance that runs there.
async fn running(driver: &Simulated) -> (Platform, RunningAgent, Uuid) {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    (platform, agent, id)
}

/// A container of this generation that nobody asked for.
async fn plant(driver: &Simulated, instance: Uuid, generation: i64) {
    let stage = agent::Stage { digest: format!("sha256:{}", "b".repeat(64)), port: PORT };
    let (told, _) = Told::new(CancellationToken::new());
    driver.launch(&stage.workload(instance, generation), &Secrets::default(), &told).await.unwrap();
}

async fn nobody_relaunches(platform: &Platform) {
    let path = admin(&format!("/policies/project/{EXAMPLE}/apps.relaunch_missing"));
    platform.http.put(&path, json!({ "value": false })).await.with(200);
}

async fn states(driver: &Simulated, instance: Uuid) -> Vec<(i64, WorkloadState)> {
    let seen = driver.seen().await.unwrap();
    let own = seen.into_iter().filter(|seen| seen.instance_id == instance);
    own.map(|seen| (seen.generation, seen.state)).collect()
}

/// Holds what nodes reported last against what should be there. The runs that this sets off go on.
pub(super) async fn compares(platform: &Platform) {
    let options = Start { correlation_id: "c-drift".into(), ..Start::default() };
    let mut tx = platform.story.pool.begin().await.unwrap();
    let mut run = platform.story.engine.start(&mut tx, &WatchDrift {}, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    platform.succeeds(run.id).await;
}

/// What the last look came to.
async fn watched(platform: &Platform) -> serde_json::Value {
    let last = "select output from engine.run where kind = 'platform.watch_drift' order by id desc limit 1";
    sqlx::query_scalar(last).fetch_one(&platform.story.pool).await.unwrap()
}

/// Waits until the node has reported twice more, looks, and waits for the runs that this sets off. Answers how many.
async fn look(platform: &Platform, node: Uuid) -> i64 {
    let seen: i64 = sqlx::query_scalar("select report_sequence from nodes where id = $1")
        .bind(node)
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    let words = [(seen + 2).to_string()];
    let later = "select report_sequence >= ($2::text[])[1]::bigint from nodes where id = $1";
    platform.story.until_true("the node reports", later, node, &[&words[0]]).await;
    compares(platform).await;
    let runs: Vec<Uuid> = sqlx::query_scalar(
        "select id from engine.run where kind = 'instance.reconcile' and finished_at is null",
    )
    .fetch_all(&platform.story.pool)
    .await
    .unwrap();
    for run in runs {
        platform.succeeds(run).await;
    }
    sqlx::query_scalar("select count(*) from engine.run where kind = 'instance.reconcile'")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_still_is_started_and_what_nobody_wants_is_taken_away() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    assert_eq!(look(&platform, agent.id).await, 0, "what is as it should be is left alone");
    driver.control(id, 1, ControlAction::Stop).await.unwrap();
    plant(&driver, id, 7).await;
    let stranger = Uuid::now_v7();
    plant(&driver, stranger, 1).await;
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(states(&driver, id).await, [(1, WorkloadState::Running)]);
    assert_eq!(states(&driver, stranger).await.len(), 1, "what is not the platform's is nobody's to touch");
    assert_eq!(platform.instance(id).await["status"], "running");
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held);
    agent.end().await;
    platform.end().await;
}

/// Its own runs may well fail; the look goes on with the others.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_cannot_be_read_keeps_no_other_from_being_put_right() {
    let driver = Simulated::new();
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let odd = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let (other, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
    let set = async |profile: &str| {
        let statement =
            format!("update app_instance_releases set profile = {profile} where instance_id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(odd).execute(&platform.story.pool).await.unwrap();
    };
    set("jsonb_build_object('was', profile)").await;
    driver.vanish();
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(states(&driver, other).await, [(2, WorkloadState::Running)]);
    assert_eq!(watched(&platform).await, json!({ "instances": [other], "unreadable": 1, "no_room": 0 }));
    set("profile -> 'was'").await;
    assert_eq!(look(&platform, agent.id).await, 2, "and it is put right once it can be read");
    assert_eq!(states(&driver, odd).await, [(2, WorkloadState::Running)]);
    agent.end().await;
    platform.end().await;
}

/// As after a newer release kept it.
async fn cannot_be_read(platform: &Platform, node: Uuid) {
    let statement = "update nodes set report_sequence = report_sequence + 2,
        report = jsonb_set(report, '{workloads,0,state}', '\"hibernating\"') where id = $1";
    sqlx::query(statement).bind(node).execute(&platform.story.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_cannot_be_read_does_not_say_that_nothing_runs() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    let (node, folder) = (agent.id, agent.kill().await);
    // One run has begun already when the report comes that it waits for.
    let mut tx = platform.story.pool.begin().await.unwrap();
    let options = Start { correlation_id: "c-drift".into(), ..Start::default() };
    let begun = ReconcileInstance { instance: id, node_id: node };
    let mut run = platform.story.engine.start(&mut tx, &begun, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    platform.story.until(run.id, &[RunState::Waiting]).await;
    cannot_be_read(&platform, node).await;
    compares(&platform).await;
    assert_eq!(watched(&platform).await, json!({ "instances": [], "unreadable": 1, "no_room": 0 }));
    let looked =
        "select exists (select from engine.step where run_id = $1 and name = 'look' and state = 'succeeded')
        and $2::text[] is not null";
    platform.story.until_true("the run has looked", looked, run.id, &[]).await;

    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.story.advance(std::time::Duration::from_secs(11)).await;
    platform.succeeds(run.id).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!((states(&driver, id).await, driver.launches()), (vec![(1, WorkloadState::Running)], 1));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_is_gone_is_launched_again() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    driver.vanish();
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(states(&driver, id).await, [(2, WorkloadState::Running)], "as a generation of its own");
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held, "what the lost one held was given back");
    assert_eq!(platform.events(id).await[3..], ["failed", "deploying", "running"]);
    assert_eq!(look(&platform, agent.id).await, 1, "and all is as it should be");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_policy_says_so_a_workload_that_is_gone_fails_its_instance_and_a_retry_brings_it_back() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    nobody_relaunches(&platform).await;
    driver.vanish();
    assert_eq!(look(&platform, agent.id).await, 1);
    let lost = platform.instance(id).await;
    assert_eq!((&lost["status"], &lost["status_reason"]["kind"]), (&json!("failed"), &json!("blocked")));
    // Nobody may begin with its version any more; what ran with it goes on.
    acts(&platform.http, "hello", lost["version"].as_str().unwrap(), "deprecate", json!({})).await;
    let retried = platform.act(id, "retry", json!({})).await;
    assert_eq!(retried["status"], "running", "{retried:#}");
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(
        platform.held(id).await,
        held,
        "what the lost one held was given back, and as much taken again"
    );
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_still_and_cannot_be_started_is_launched_again() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    driver.control(id, 1, ControlAction::Stop).await.unwrap();
    driver.will_not_start(1);
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(states(&driver, id).await, [(2, WorkloadState::Running)], "as a generation of its own");
    assert_eq!(look(&platform, agent.id).await, 1, "and all is as it should be");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_policy_says_so_what_cannot_be_started_waits_for_a_person_and_is_not_tried_every_minute() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    nobody_relaunches(&platform).await;
    driver.control(id, 1, ControlAction::Stop).await.unwrap();
    driver.will_not_start(1);
    assert_eq!(look(&platform, agent.id).await, 1);
    let lost = platform.instance(id).await;
    assert_eq!((&lost["status"], &lost["status_reason"]["kind"]), (&json!("failed"), &json!("blocked")));
    let message = lost["status_reason"]["message"].as_str().unwrap();
    assert!(message.contains("told not to start it"), "{message}");
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(platform.act(id, "retry", json!({})).await["status"], "running");
    agent.end().await;
    platform.end().await;
}

/// The node falls silent for so long that it is given up, and comes back after `meanwhile`.
pub(super) async fn lost_and_found(
    platform: &Platform,
    agent: RunningAgent,
    driver: &Simulated,
    meanwhile: impl FnOnce(),
) -> RunningAgent {
    let (node, folder) = (agent.id, agent.kill().await);
    platform.story.advance(std::time::Duration::from_secs(120)).await;
    watch(platform).await;
    meanwhile();
    let agent = RunningAgent::again(&platform.http, folder, driver);
    let back = "select status = 'active' and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("the node is back", back, node, &[]).await;
    watch(platform).await;
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_back_with_nothing_is_given_its_instances_again() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    let agent = lost_and_found(&platform, agent, &driver, || driver.vanish()).await;
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "node_unreachable");
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(states(&driver, id).await, [(2, WorkloadState::Running)]);
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_policy_says_so_what_a_node_comes_back_without_waits_for_a_person() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    nobody_relaunches(&platform).await;
    let agent = lost_and_found(&platform, agent, &driver, || driver.vanish()).await;
    assert_eq!(look(&platform, agent.id).await, 1);
    let lost = platform.instance(id).await;
    assert_eq!((&lost["status"], &lost["status_reason"]["kind"]), (&json!("failed"), &json!("blocked")));
    assert_eq!(look(&platform, agent.id).await, 1, "once is enough");
    assert_eq!(platform.act(id, "retry", json!({})).await["status"], "running");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_comes_back_with_what_stands_still_starts_it() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    driver.control(id, 1, ControlAction::Stop).await.unwrap();
    let agent = lost_and_found(&platform, agent, &driver, || {}).await;
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(states(&driver, id).await, [(1, WorkloadState::Running)], "the very one");
    let again = "select report #>> '{workloads,0,state}' = $2[1] from nodes where id = $1";
    platform.story.until_true("the node says so", again, agent.id, &["running"]).await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_which_a_member_is_gone_is_not_taken_back_but_launched_again() {
    let driver = Simulated::new();
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let mut untested = stack();
    untested["smoke"] = json!([]);
    let number = platform.draft(untested).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    let made = platform.create(wish(&number, allocation, &json!({ "model": "org/first" }))).await.with(202);
    let id = id_of(&made);
    platform.succeeds(id_of(&made["workflow"])).await;
    assert_eq!(states(&driver, id).await.len(), 2);
    let agent = lost_and_found(&platform, agent, &driver, || driver.loses(id, "helper")).await;
    assert_eq!(platform.instance(id).await["status"], "failed", "half a stack serves nobody");
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(states(&driver, id).await, [(2, WorkloadState::Running), (2, WorkloadState::Running)]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_does_to_real_containers_is_undone() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let number = platform.real_version(&engine, &engine.stage.digest, &profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    let (first, second) = (format!("gpuaas-{id}-main-g1"), format!("gpuaas-{id}-main-g2"));
    let ours = || {
        let label = format!("label=gpuaas.instance={id}");
        engine.docker(&["ps", "--filter", &label, "--format", "{{.Names}}"]).unwrap()
    };
    let image = engine.docker(&["inspect", "--format", "{{.Image}}", &first]).unwrap();

    engine.docker(&["stop", "--time", "1", &first]).unwrap();
    let labels = [
        ("gpuaas.instance", id.to_string()),
        ("gpuaas.member", "main".into()),
        ("gpuaas.generation", "7".into()),
    ];
    let labels = labels.map(|(name, value)| format!("--label={name}={value}"));
    let planted = ["run", "--detach", "--name", "planted", &labels[0], &labels[1], &labels[2], &image];
    engine.docker(&planted).unwrap();
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(ours(), first, "what was stopped is started, and what was planted is gone");

    engine.docker(&["rm", "--force", &first]).unwrap();
    assert_eq!(look(&platform, agent.id).await, 2);
    assert_eq!(ours(), second, "what was taken away is launched again");
    assert_eq!(platform.instance(id).await["status"], "running");
    let page = reqwest::get(format!("{}/index.html", platform.url(id).await)).await.unwrap();
    assert_eq!(page.text().await.unwrap(), "welcome");
    platform.decommission(id).await;
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

/// How an instance is, its own node says and no other.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_has_of_an_instance_of_another_is_taken_away_there_and_changes_nothing() {
    let (driver, other) = (Simulated::new(), Simulated::new());
    let (platform, agent, id) = running(&driver).await;
    let (stranger, _) = platform.node("gpu-2", &other, 4).await;
    plant(&other, id, 7).await;
    assert_eq!(look(&platform, stranger.id).await, 1);
    assert_eq!(states(&other, id).await, []);
    assert_eq!(states(&driver, id).await, [(1, WorkloadState::Running)]);
    assert_eq!(platform.events(id).await, ["requested", "deploying", "running"]);
    let held = ["cpu_core 1", "gpu 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];
    assert_eq!(platform.held(id).await, held, "what it holds where it lives is its own");
    agent.end().await;
    stranger.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_an_ended_instance_is_taken_away() {
    let driver = Simulated::new();
    let (platform, agent, id) = running(&driver).await;
    platform.decommission(id).await;
    plant(&driver, id, 1).await;
    assert_eq!(look(&platform, agent.id).await, 1);
    assert_eq!(states(&driver, id).await, []);
    assert_eq!(driver.leftovers(id).await, Ok(vec![]));
    agent.end().await;
    platform.end().await;
}
