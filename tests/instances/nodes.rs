//! Instances and the machines under them: one that falls silent takes its instances along and brings them back, and an
//! allocation is given back only when nothing stands on it any more.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use engine::{Engine, RunState, Start};
use serde_json::json;
use uuid::Uuid;
use workflows::allocation::{ReleaseAllocation, target};
use workflows::reconcilers::lost_nodes::WatchNodes;

use super::tried_again::whose_end_was_cancelled;
use crate::http::{admin, project};
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;
use crate::support::story::{operator, quick};

pub(super) async fn watch(platform: &Platform) {
    let run = begins_to_watch(platform).await;
    platform.succeeds(run).await;
}

/// The run of it.
pub(super) async fn begins_to_watch(platform: &Platform) -> Uuid {
    let options = Start { correlation_id: "c-watch".into(), ..Start::default() };
    let mut tx = platform.story.pool.begin().await.unwrap();
    let mut run = platform.story.engine.start(&mut tx, &WatchNodes {}, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    run.id
}

/// While a transaction lasts, nobody else gets at its rows.
#[tokio::test(flavor = "multi_thread")]
async fn many_nodes_that_fall_silent_together_are_given_up_a_few_at_a_time() {
    let platform = Platform::new().await;
    for number in 0..25 {
        Node::enrol(&platform.http, &format!("gpu-{number}")).await;
    }
    platform.story.advance(Duration::from_secs(120)).await;
    let run = begins_to_watch(&platform).await;
    platform.succeeds(run).await;
    let given_up = "select (select count(*) from nodes where status = 'unavailable'),
        (select count(*) from engine.step where run_id = $1 and name = 'give_up_silent')";
    let (nodes, parts): (i64, i64) =
        sqlx::query_as(given_up).bind(run).fetch_one(&platform.story.pool).await.unwrap();
    assert_eq!((nodes, parts), (25, 2));
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_fails_its_instances_and_brings_them_back_when_it_returns() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let (node, folder) = (agent.id, agent.kill().await);
    platform.story.advance(Duration::from_secs(120)).await;
    watch(&platform).await;
    let lost = platform.instance(id).await;
    let reason = &lost["status_reason"];
    assert_eq!(
        (&lost["status"], &reason["code"], &reason["kind"]),
        (&json!("failed"), &json!("node_unreachable"), &json!("waiting"))
    );
    let shown = platform.http.get(&admin(&format!("/nodes/{node}"))).await.with(200);
    assert_eq!(shown["status"], "unavailable");
    let told: i64 =
        sqlx::query_scalar("select count(*) from outbox where type = 'nodes.lost' and subject = $1")
            .bind(node.to_string())
            .fetch_one(&platform.story.pool)
            .await
            .unwrap();
    assert_eq!(told, 2, "to the project that holds a part of it, and to the platform");
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "failed", "a silent node brings nothing back");
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform
        .story
        .until_true(
            "the node is back",
            "select status = 'active' and $2::text[] is not null from nodes where id = $1",
            node,
            &[],
        )
        .await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    assert_eq!(driver.launches(), 1, "what ran all the while was not started again");
    assert_eq!(platform.events(id).await[3..], ["failed", "running"]);
    agent.end().await;
    platform.end().await;
}

/// It looks again and again, later and later.
async fn released(platform: &Platform, run: Uuid) {
    for _ in 0..600 {
        let seen = platform.story.until(run, &[RunState::Waiting, RunState::Succeeded]).await;
        if seen == RunState::Succeeded {
            return;
        }
        platform.story.advance(Duration::from_secs(5)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it waits for what never comes: {}", platform.story.describe(run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_an_allocation_decommissions_what_stands_on_it_first() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let mut instances: Vec<Uuid> = Vec::new();
    for _ in 0..2 {
        let (id, run) = platform.deploy_version(allocation, &number, 1).await;
        platform.succeeds(run).await;
        instances.push(id);
    }
    let path = admin(&format!("/allocations/{allocation}/release"));
    let begun = platform.http.post(&path, json!({})).await.with(202);
    assert_eq!(begun["status"], "releasing");
    let run = id_of(&begun["workflow"]);
    let again = platform.http.post(&path, json!({})).await;
    assert!(again.status == 202 || again.status == 200, "{:#}", again.body);
    if again.status == 202 {
        assert_eq!(id_of(&again.body["workflow"]), run, "one run");
    }
    let body = json!({ "app_slug": "hello", "version": number, "display_name": "late" });
    let late = platform.create(body).await.with(422);
    assert_eq!(late["code"], "placement_unsatisfiable", "nothing new is placed there");
    released(&platform, run).await;
    for id in instances {
        assert_eq!(platform.instance(id).await["status"], "decommissioned");
        platform.http.get(&project(&format!("/app-instances/{id}/receipt"))).await.with(200);
    }
    let released = platform.http.get(&project(&format!("/allocations/{allocation}"))).await.with(200);
    assert_eq!(released["status"], "released");
    agent.end().await;
    platform.end().await;
}

/// It began nothing, so nothing was released; and the allocation takes nothing new either.
#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_whose_release_was_cancelled_before_its_turn_can_still_be_released() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let elsewhere = Engine::new(platform.story.database.options.clone(), quick());
    let options = Start {
        project_id: EXAMPLE,
        correlation_id: "c-release".into(),
        start_key: Some(target(allocation)),
        target: Some(target(allocation)),
        ..Start::default()
    };
    let mut tx = platform.story.pool.begin().await.unwrap();
    sqlx::query("update allocations set status = 'releasing' where id = $1")
        .bind(allocation)
        .execute(&mut *tx)
        .await
        .unwrap();
    let dead = elsewhere.start(&mut tx, &ReleaseAllocation { allocation }, options).await.unwrap().id;
    elsewhere.cancel(&mut tx, dead, &operator()).await.unwrap();
    tx.commit().await.unwrap();
    elsewhere.close().await;
    platform.story.engine.wake();
    assert_eq!(platform.story.ends(dead).await, RunState::Cancelled);
    let path = admin(&format!("/allocations/{allocation}/release?wait=60s"));
    let released = platform.http.post(&path, json!({})).await.with(200);
    assert_eq!(
        (&released["status"], &released["workflow"]["status"]),
        (&json!("released"), &json!("succeeded")),
        "{released:#}"
    );
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    agent.end().await;
    platform.end().await;
}

/// Nobody acts any more on what stands there, though it is to end.
#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_is_released_past_an_end_that_was_cancelled_before_its_turn() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = whose_end_was_cancelled(&platform, &driver, allocation).await;
    let path = admin(&format!("/allocations/{allocation}/release"));
    let begun = platform.http.post(&path, json!({})).await.with(202);
    released(&platform, id_of(&begun["workflow"])).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    let shown = platform.http.get(&project(&format!("/allocations/{allocation}"))).await.with(200);
    assert_eq!(shown["status"], "released");
    agent.end().await;
    platform.end().await;
}

const A_RESULT_WAITS: &str = "select exists (select from pg_stat_activity where datname = current_database()
    and wait_event_type = 'Lock' and query like '%for key share of i%') and $1::uuid is not null and $2::text[] is not null";

/// Steps hold an instance and then give its node tasks. A result that held its task before the instance would meet them
/// halfway, and one of the two would be thrown out.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_waits_for_whoever_holds_its_instance_and_holds_nothing_meanwhile() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let mut step = platform.story.pool.begin().await.unwrap();
    sqlx::query("select from app_instances where id = $1 for update")
        .bind(id)
        .execute(&mut *step)
        .await
        .unwrap();
    driver.release(1);
    platform.story.until_true("the node's result waits", A_RESULT_WAITS, run, &[]).await;
    sqlx::query("select from node_tasks where instance_id = $1 for update nowait")
        .bind(id)
        .execute(&mut *step)
        .await
        .expect("the step gets the task that the result is about");
    step.commit().await.unwrap();
    platform.succeeds(run).await;
    agent.end().await;
    platform.end().await;
}
