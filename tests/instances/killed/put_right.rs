//! Somebody stops the workload, and starts one of their own under its label. Whoever is killed while the platform puts that right:
//! in the end what served serves again, and nothing else is there.

use engine::RunState;
use serde_json::json;
use uuid::Uuid;
use workflows::instance::reconcile::ReconcileInstance;

use super::life::{
    asks, finds_out, is_gone, is_left_alone, is_put_right, newest_look, one_serves, relaunches,
    runs_in_the_end, settles,
};
use super::{Life, Road, gate, road, versions};
use crate::support::fleet::{Fleet, Victim};
use crate::support::slow::is_slow;

/// What every look does, and what is done where the workload is gone, is struck in the course of a life.
fn repairs() -> Road {
    road::<ReconcileInstance>(&["note_report", "node_reported", "look", "mark_missing", "instance.deploy"])
}

async fn through_repairs(victim: Victim, short: usize) {
    let mut fleet = Fleet::start().await;
    gate::build(&fleet.platform.story).await;
    let (first, _) = versions(&fleet).await;
    let allocation = fleet.allocates(1).await;
    relaunches(&fleet, false).await;
    let (id, run) = fleet.platform.deploy_version(allocation, &first, 0).await;
    assert_eq!(settles(&fleet, run, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
    let road = repairs();
    let times = if is_slow() { 0..road.len() } else { short..short + 1 };
    for number in times {
        is_left_alone(&fleet, id).await;
        let mut life = Life { fleet: &mut fleet, victim, number };
        let gate = life.closes(&road).await;
        let before = newest_look(life.fleet, id).await;
        meddles(life.fleet, id, number);
        let run = finds_out(life.fleet, id, before).await;
        life.strikes(gate, run).await;
        settles(life.fleet, run, (id, 2)).await;
        runs_in_the_end(&fleet, id).await;
        is_put_right(&fleet, id).await;
        one_serves(&fleet, id, "welcome").await;
        fleet.platform.story.check_while_others_work().await;
    }
    let run = asks(&fleet, id, "decommission", json!({})).await;
    assert_eq!(settles(&fleet, run, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
    is_gone(&fleet, id).await;
    fleet.end().await;
}

fn meddles(fleet: &Fleet, id: Uuid, number: usize) {
    let docker = |words: &[&str]| fleet.engine.docker(words).unwrap();
    let [serving] = &fleet.containers(id)[..] else { panic!("{:?}", fleet.containers(id)) };
    let image = docker(&["inspect", "--format", "{{.Image}}", serving]);
    docker(&["stop", "--time", "1", serving]);
    let [instance, name] = [format!("--label=gpuaas.instance={id}"), format!("planted-{number}")];
    let others = ["--label=gpuaas.member=main", "--label=gpuaas.generation=700"];
    docker(&["run", "--detach", "--name", &name, &instance, others[0], others[1], &image]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_anywhere_in_a_repair_costs_nothing() {
    Box::pin(through_repairs(Victim::Server, 0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_anywhere_in_a_repair_costs_nothing() {
    Box::pin(through_repairs(Victim::Worker, 3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_anywhere_in_a_repair_costs_nothing() {
    Box::pin(through_repairs(Victim::Agent, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_killed_anywhere_in_a_repair_costs_nothing() {
    Box::pin(through_repairs(Victim::Engine, 4)).await;
}
