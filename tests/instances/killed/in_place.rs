//! Where there is no room for both, the old workload is stopped before the new one is launched. Whoever is killed from there on,
//! one of the two serves in the end: the new one, or the old one again.

use engine::{RunState, Workflow};
use serde_json::{Value, json};
use workflows::instance::UpgradeInstance;

use super::life::{asks, is_gone, relaunches, settles};
use super::{Life, Road, gate, versions};
use crate::http::admin;
use crate::support::fleet::{Fleet, Victim};
use crate::support::slow::is_slow;

/// Everything from the stop on; what comes before it is struck where both fit.
fn road() -> Road {
    let steps = UpgradeInstance::PLAN.iter().map(|step| (UpgradeInstance::NAME, step.name));
    let road: Road = steps.skip_while(|(_, step)| *step != "stop_workload").collect();
    assert!(!road.is_empty(), "a change in place stops what serves");
    road
}

async fn through_changes(victim: Victim, short: usize) {
    let mut fleet = Fleet::start().await;
    gate::build(&fleet.platform.story).await;
    let (first, second) = versions(&fleet).await;
    let road = road();
    let lives = if is_slow() { 0..road.len() } else { short..short + 1 };
    for number in lives {
        let allocation = fleet.allocates(1).await;
        relaunches(&fleet, false).await;
        let (id, run) = fleet.platform.deploy_version(allocation, &first, 0).await;
        assert_eq!(settles(&fleet, run, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
        let mut life = Life { fleet: &mut fleet, victim, number };
        let gate = life.closes(&road).await;
        let run = asks(life.fleet, id, "upgrade", json!({ "target_version": second })).await;
        life.strikes(gate, run).await;
        let changed = settles(life.fleet, run, (id, 2)).await == RunState::Succeeded;
        life.serves(id, if changed { "second" } else { "welcome" }).await;
        let told = fleet.platform.instance(id).await;
        let last = &told["last_operation"];
        // How it changed is told of what did.
        let (status, strategy) =
            if changed { ("succeeded", json!("stop_then_start")) } else { ("failed", Value::Null) };
        assert_eq!(
            (&last["workflow_id"], &last["status"], &last["strategy"]),
            (&json!(run), &json!(status), &strategy),
            "{told:#}"
        );
        let run = asks(&fleet, id, "decommission", json!({})).await;
        assert_eq!(settles(&fleet, run, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
        is_gone(&fleet, id).await;
        fleet
            .platform
            .http
            .post(&admin(&format!("/allocations/{allocation}/release")), json!({}))
            .await
            .with(200);
        fleet.platform.story.check_while_others_work().await;
    }
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_anywhere_in_a_change_in_place_costs_nothing() {
    Box::pin(through_changes(Victim::Server, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_anywhere_in_a_change_in_place_costs_nothing() {
    Box::pin(through_changes(Victim::Worker, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_anywhere_in_a_change_in_place_costs_nothing() {
    Box::pin(through_changes(Victim::Agent, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_killed_anywhere_in_a_change_in_place_costs_nothing() {
    Box::pin(through_changes(Victim::Engine, 2)).await;
}
