//! Whoever is killed, with SIGKILL and wherever a change of an instance stands, nothing is lost, doubled or left behind: the
//! server, the worker, the agent and the container engine in turn, while an instance is deployed, upgraded, rolled back, brought
//! back and taken away. Nobody helps; time alone passes.
//! And whatever the line between a node and the platform loses, the node goes on.

use std::time::Duration;

use agent::{Driver, Simulated};
use chrono::TimeDelta;
use engine::{RunState, Start};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::reconcilers::drift::WatchDrift;

use super::nodes::watch;
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::fleet::{Fleet, Victim, status};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;
use crate::support::slow::is_slow;

/// The steps around which each run is struck: before the node hears of it, while it works, while it is asked, at the end.
const DEPLOY: [&str; 4] = ["issue_pull_intent", "workload_launched", "workload_healthy", "start_metering"];
const CHANGE: [&str; 4] = ["reserve_placement", "workload_launched", "workload_healthy", "workload_removed"];
const RETRY: [&str; 4] = ["workload_removed", "workload_launched", "workload_healthy", "start_metering"];
const DECOMMISSION: [&str; 3] = ["stop_accepting_work", "workload_removed", "mark_decommissioned"];

/// What is over in no time waits for this table, which the story holds until it has struck.
fn held_up_by(phase: &str) -> Option<&'static str> {
    match phase {
        "start_metering" => Some("lock table meters in access exclusive mode"),
        "mark_decommissioned" => Some("lock table teardown_receipts in access exclusive mode"),
        _ => None,
    }
}

const IS_AT: &str = "select exists (select 1 from engine.step where run_id = $1 and name = $2[1])
    and (select finished_at is null from engine.run where id = $1)";

/// An instance through all of its life, its helpers killed once in each of its changes.
async fn through_a_life(victim: Victim, phases: impl IntoIterator<Item = (usize, usize, usize)>) {
    let mut fleet = Fleet::start().await;
    let first =
        fleet.platform.real_version(&fleet.engine, &fleet.engine.stage.digest, &profile(PORT, 30)).await;
    let image = fleet.engine.image("second").unwrap();
    let second = fleet.platform.real_version(&fleet.engine, &image, &profile(PORT, 30)).await;
    for (deploy, change, decommission) in phases {
        let (id, run) = fleet.platform.deploy_version(fleet.allocation, &first, 0).await;
        strike(&mut fleet, victim, run, DEPLOY[deploy]).await;
        if settles(&fleet, run, (id, 1)).await != RunState::Succeeded {
            // A launch that its engine did not survive is taken back, and asked for again.
            stands_still(&fleet, id).await;
            let again = asks(&fleet, id, "retry", json!({})).await;
            assert_eq!(settles(&fleet, again, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
        }
        assert_eq!(status(&fleet.platform, id).await, "running");
        one_serves(&fleet, id, "welcome").await;

        let run = asks(&fleet, id, "upgrade", json!({ "target_version": second })).await;
        strike(&mut fleet, victim, run, CHANGE[change]).await;
        let upgraded = settles(&fleet, run, (id, 2)).await == RunState::Succeeded;
        one_serves(&fleet, id, if upgraded { "second" } else { "welcome" }).await;
        if upgraded {
            let run = asks(&fleet, id, "rollback", json!({})).await;
            strike(&mut fleet, victim, run, CHANGE[change]).await;
            let back = settles(&fleet, run, (id, 2)).await == RunState::Succeeded;
            one_serves(&fleet, id, if back { "welcome" } else { "second" }).await;
        }

        loses_it(&fleet, id).await;
        let run = asks(&fleet, id, "retry", json!({})).await;
        strike(&mut fleet, victim, run, RETRY[deploy]).await;
        if settles(&fleet, run, (id, 1)).await == RunState::Succeeded {
            assert_eq!(status(&fleet.platform, id).await, "running");
        }

        let run = asks(&fleet, id, "decommission", json!({})).await;
        strike(&mut fleet, victim, run, DECOMMISSION[decommission]).await;
        assert_eq!(settles(&fleet, run, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
        assert_eq!(status(&fleet.platform, id).await, "decommissioned");
        stands_still(&fleet, id).await;
        assert_eq!(fleet.engine.leftovers(), Vec::<String>::new());
        fleet.platform.http.get(&project(&format!("/app-instances/{id}/receipt"))).await.with(200);
        fleet.platform.story.check_while_others_work().await;
    }
    fleet.end().await;
}

async fn asks(fleet: &Fleet, id: Uuid, verb: &str, body: Value) -> Uuid {
    let path = project(&format!("/app-instances/{id}/{verb}"));
    id_of(&fleet.platform.http.acting("operator").post(&path, body).await.with(202)["workflow"])
}

/// Kills once the run has come so far, and starts what was killed again.
async fn strike(fleet: &mut Fleet, victim: Victim, run: Uuid, phase: &str) {
    let mut held = fleet.platform.story.pool.begin().await.unwrap();
    if let Some(lock) = held_up_by(phase) {
        sqlx::raw_sql(lock).execute(&mut *held).await.unwrap();
    }
    fleet.platform.story.until_true(&format!("the run is at {phase}"), IS_AT, run, &[phase]).await;
    fleet.kill(victim);
    held.rollback().await.unwrap();
    fleet.start_again(victim).await;
    // What an agent was doing is handed out again when its lease is over, by the database's clock.
    if victim == Victim::Agent {
        fleet.platform.story.advance(Duration::from_secs(61)).await;
    }
}

/// How the run ended. Where it rests, it goes on by itself when its time comes; all the while the instance has at most so many
/// workloads.
async fn settles(fleet: &Fleet, run: Uuid, (id, most): (Uuid, usize)) -> RunState {
    let story = &fleet.platform.story;
    for _ in 0..1200 {
        let there = fleet.containers(id);
        assert!(there.len() <= most, "{there:?}");
        let state = story.state(run).await;
        match state {
            state if state.is_terminal() => return state,
            RunState::Paused => {
                let wakes: bool =
                    sqlx::query_scalar("select wake_at is not null from engine.run where id = $1")
                        .bind(run)
                        .fetch_one(&story.pool)
                        .await
                        .unwrap();
                assert!(wakes || story.state(run).await != RunState::Paused, "{}", story.describe(run).await);
                story.advance(Duration::from_secs(60)).await;
            }
            RunState::Stuck => panic!("{}\n{}", story.describe(run).await, fleet.said()),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not come to its end\n{}\n{}", story.describe(run).await, fleet.said());
}

/// Looks at once for what differs, as the platform does every minute.
async fn look(fleet: &Fleet) {
    let options = Start { correlation_id: "c-drift".into(), ..Start::default() };
    let mut tx = fleet.platform.story.pool.begin().await.unwrap();
    let run = fleet.platform.story.engine.start(&mut tx, &WatchDrift {}, options).await.unwrap();
    tx.commit().await.unwrap();
    fleet.platform.story.ends(run.id).await;
}

/// Somebody takes the workload away behind the platform's back, and the platform finds out.
async fn loses_it(fleet: &Fleet, id: Uuid) {
    let path = admin(&format!("/policies/project/{EXAMPLE}/apps.relaunch_missing"));
    fleet.platform.http.put(&path, json!({ "value": false })).await.with(200);
    for name in fleet.containers(id) {
        fleet.engine.docker(&["rm", "--force", &name]).unwrap();
    }
    for _ in 0..600 {
        if status(&fleet.platform, id).await == "failed" {
            let free =
                "select not exists (select 1 from engine.run where target = 'app_instance:' || $1::text
                and finished_at is null) and $2::text[] is not null";
            return fleet.platform.story.until_true("nothing acts on it", free, id, &[]).await;
        }
        look(fleet).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("nobody found out\n{}", fleet.said());
}

/// One workload, and it is this one.
async fn one_serves(fleet: &Fleet, id: Uuid, words: &str) {
    assert_eq!(fleet.containers(id).len(), 1, "{:?}", fleet.containers(id));
    let url = format!("{}/index.html", fleet.platform.url(id).await);
    let mut tries = 0;
    // An engine that was killed takes what it ran for stopped; the platform finds that, and has it started.
    let page = loop {
        match reqwest::get(&url).await {
            Ok(page) => break page.text().await.unwrap(),
            Err(error) if tries > 600 => panic!("{error}\n{}", fleet.said()),
            Err(_) if tries % 20 == 19 => look(fleet).await,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        tries += 1;
    };
    assert_eq!(fleet.containers(id).len(), 1, "{:?}", fleet.containers(id));
    assert_eq!(page, words);
    let held = fleet.platform.held(id).await;
    assert_eq!(held, ["cpu_core 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"]);
}

/// Nothing is there of it, and it holds nothing.
async fn stands_still(fleet: &Fleet, id: Uuid) {
    assert_eq!(fleet.containers(id), Vec::<String>::new());
    assert_eq!(fleet.platform.held(id).await, Vec::<String>::new());
}

/// Every phase on nights, one of each otherwise.
fn phases(short: (usize, usize, usize)) -> Vec<(usize, usize, usize)> {
    if !is_slow() {
        return vec![short];
    }
    (0..DEPLOY.len()).map(|phase| (phase, phase, phase % DECOMMISSION.len())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_the_middle_of_a_life_costs_nothing() {
    Box::pin(through_a_life(Victim::Server, phases((1, 2, 1)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_in_the_middle_of_a_life_costs_nothing() {
    Box::pin(through_a_life(Victim::Worker, phases((0, 3, 0)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_in_the_middle_of_a_life_costs_nothing() {
    Box::pin(through_a_life(Victim::Agent, phases((1, 1, 1)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_killed_in_the_middle_of_a_life_costs_nothing() {
    Box::pin(through_a_life(Victim::Engine, phases((1, 2, 1)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_while_the_platform_is_away_for_longer_than_any_lease_or_token_lives() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    // A second launch is on its way when the line is cut; its result cannot be told.
    driver.will(agent::SimulatedFault::Hang);
    let (late, run) = platform.deploy_version(allocation, &number, 1).await;
    let out = "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";
    platform.story.until_true("the node has the task", out, run, &["handed_out"]).await;
    platform.door.cut(true);
    driver.release(1);
    while driver.launches() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Past the lease of every task and process, past every token that the node has, and past the patience of the launch.
    platform.http.realm.clock.advance(TimeDelta::minutes(50));
    platform.story.advance(Duration::from_secs(50 * 60)).await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "node_unreachable");
    assert_eq!(driver.seen().await.unwrap().len(), 2, "what ran goes on");

    platform.door.cut(false);
    let back = "select status = 'active' and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("the node is back", back, agent.id, &[]).await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    // The launch was given up meanwhile, and what came of it went; or it was heard of in time.
    let state = platform.story.ends(run).await;
    let left = if state == RunState::Succeeded { 2 } else { 1 };
    while driver.seen().await.unwrap().len() != left {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(driver.launches(), 2, "nothing was started twice");
    for id in [id, late] {
        platform.decommission(id).await;
        assert_eq!(platform.held(id).await, Vec::<String>::new());
    }
    assert_eq!(driver.seen().await.unwrap(), vec![]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_arrive_are_made_up_for_and_nothing_is_done_twice() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    // The node asks and is heard; what it is given is lost on the way.
    platform.door.lose_answers();
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    let out = "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";
    platform.story.until_true("the task was handed out", out, run, &["handed_out"]).await;
    assert_eq!(driver.launches(), 0, "and never arrived");
    platform.door.cut(false);
    platform.story.advance(Duration::from_secs(61)).await;
    platform.story.until_true("the launch is at work or done", out, run, &["succeeded"]).await;
    platform.succeeds(run).await;
    assert_eq!(driver.launches(), 1);
    // Its own answers are heard; that they were it does not learn, so it tells them again.
    platform.door.lose_answers();
    let run = id_of(
        &platform
            .http
            .acting("operator")
            .post(&project(&format!("/app-instances/{id}/decommission")), json!({}))
            .await
            .with(202)["workflow"],
    );
    platform.story.advance(Duration::from_secs(61)).await;
    platform.door.cut(false);
    platform.story.advance(Duration::from_secs(61)).await;
    platform.succeeds(run).await;
    assert_eq!(driver.seen().await.unwrap(), vec![]);
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
