//! Whoever is killed, with SIGKILL and wherever a change of an instance stands, nothing is lost, doubled or left behind: the
//! server, the worker, the agent and the container engine in turn, while an instance is deployed, upgraded, rolled back, brought
//! back by the platform and by a person, and taken away by itself and with its allocation. Nobody helps; time alone passes.
//!
//! Where a run is struck follows from the plan of its workflow: at every write that brings it to a next step. A step that is
//! added to a plan is struck from then on, and one that no life comes to fails the story.

mod gate;
mod in_place;
mod life;
mod line;
mod put_right;

use std::time::Duration;

use engine::{RunState, Workflow};
use serde_json::json;
use uuid::Uuid;
use workflows::allocation::ReleaseAllocation;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;
use workflows::instance::reconcile::ReconcileInstance;
use workflows::instance::{RollbackInstance, UpgradeInstance};

use self::gate::{Gate, Write};
use self::life::{
    asks, is_gone, is_left_alone, is_put_right, loses_it, one_serves, relaunches, runs_in_the_end, settles,
};
use crate::http::admin;
use crate::support::docker::PORT;
use crate::support::fleet::{Fleet, Victim};
use crate::support::platform::{id_of, profile};
use crate::support::slow::is_slow;

/// Where runs of one workflow are struck: its kind, and the steps that a life brings it to.
type Road = Vec<(&'static str, &'static str)>;

fn road<W: Workflow>(without: &[&str]) -> Road {
    let strange = without.iter().find(|name| W::PLAN.iter().all(|step| step.name != **name));
    assert_eq!(strange, None, "the plan of {} has no such step", W::NAME);
    let taken = W::PLAN.iter().filter(|step| !without.contains(&step.name));
    taken.map(|step| (W::NAME, step.name)).collect()
}

/// The roads of a life. What they leave out is struck without processes, in `struck`.
struct Roads {
    deploy: Road,
    upgrade: Road,
    rollback: Road,
    relaunch: Road,
    retry: Road,
    decommission: Road,
    /// The release of an allocation, and the end of what stands there.
    release: Road,
}

impl Roads {
    fn new() -> Roads {
        let earlier = ["remove_workload", "workload_removed", "release_earlier"];
        let in_its_place = ["mark_unchanged", "stop_workload", "workload_stopped"];
        let stands_still =
            ["remove_stray", "stray_removed", "release_strays", "restart_workload", "workload_restarted"];
        // Nobody logs in to set these up.
        let ended = road::<DecommissionInstance>(&["end_trust", "ssh_trust_ended"]);
        Roads {
            deploy: road::<DeployInstance>(&[&earlier[..], &["ssh_trust_installed"]].concat()),
            upgrade: road::<UpgradeInstance>(&in_its_place),
            rollback: road::<RollbackInstance>(&in_its_place),
            relaunch: road::<ReconcileInstance>(&stands_still),
            retry: road::<DeployInstance>(&["ssh_trust_installed"]),
            release: [road::<ReleaseAllocation>(&[]), ended.clone()].concat(),
            decommission: ended,
        }
    }

    /// So many lives come to every step of every road. Every other one ends with its allocation.
    fn lives(&self) -> usize {
        let whole = [&self.deploy, &self.upgrade, &self.rollback, &self.relaunch, &self.retry].map(Vec::len);
        let halved = [&self.decommission, &self.release].map(|road| road.len() * 2);
        whole.into_iter().chain(halved).max().unwrap_or_default()
    }
}

/// Instances through all of their lives, their helpers killed once in each of their changes.
async fn through_lives(victim: Victim, short: usize) {
    let mut fleet = Fleet::start().await;
    gate::build(&fleet.platform.story).await;
    let (first, second) = versions(&fleet).await;
    let roads = Roads::new();
    let lives = if is_slow() { 0..roads.lives() } else { short..short + 1 };
    for life in lives {
        let mut life = Life { fleet: &mut fleet, victim, number: life };
        Box::pin(life.is_lived(&roads, &first, &second)).await;
    }
    fleet.end().await;
}

/// Of which the first says "welcome" and the second "second". They come to every step: a workload that serves at once is not asked
/// whether it does.
async fn versions(fleet: &Fleet) -> (String, String) {
    let [first, second] = ["welcome", "second"].map(|words| fleet.engine.slow_image(words).unwrap());
    let first = fleet.platform.real_version(&fleet.engine, &first, &profile(PORT, 30)).await;
    let second = fleet.platform.real_version(&fleet.engine, &second, &profile(PORT, 30)).await;
    (first, second)
}

struct Life<'a> {
    fleet: &'a mut Fleet,
    victim: Victim,
    number: usize,
}

impl Life<'_> {
    async fn is_lived(&mut self, roads: &Roads, first: &str, second: &str) {
        let allocation = self.fleet.allocates(2).await;
        relaunches(self.fleet, false).await;
        let gate = self.closes(&roads.deploy).await;
        let (id, run) = self.fleet.platform.deploy_version(allocation, first, 0).await;
        self.strikes(gate, run).await;
        settles(self.fleet, run, (id, 1)).await;
        runs_in_the_end(self.fleet, id).await;
        self.serves(id, "welcome").await;

        let gate = self.closes(&roads.upgrade).await;
        let run = asks(self.fleet, id, "upgrade", json!({ "target_version": second })).await;
        self.strikes(gate, run).await;
        let mut serves = "welcome";
        if settles(self.fleet, run, (id, 2)).await != RunState::Succeeded {
            self.serves(id, serves).await;
            let run = asks(self.fleet, id, "upgrade", json!({ "target_version": second })).await;
            assert_eq!(settles(self.fleet, run, (id, 2)).await, RunState::Succeeded, "{}", self.fleet.said());
        }
        serves = "second";
        self.serves(id, serves).await;

        let gate = self.closes(&roads.rollback).await;
        let run = asks(self.fleet, id, "rollback", json!({})).await;
        self.strikes(gate, run).await;
        if settles(self.fleet, run, (id, 2)).await == RunState::Succeeded {
            serves = "welcome";
        }
        self.serves(id, serves).await;

        relaunches(self.fleet, true).await;
        is_left_alone(self.fleet, id).await;
        let gate = self.closes(&roads.relaunch).await;
        let run = loses_it(self.fleet, id).await;
        self.strikes(gate, run).await;
        settles(self.fleet, run, (id, 1)).await;
        runs_in_the_end(self.fleet, id).await;
        self.serves(id, serves).await;

        relaunches(self.fleet, false).await;
        is_left_alone(self.fleet, id).await;
        let run = loses_it(self.fleet, id).await;
        settles(self.fleet, run, (id, 1)).await;
        let gate = self.closes(&roads.retry).await;
        let run = asks(self.fleet, id, "retry", json!({})).await;
        self.strikes(gate, run).await;
        settles(self.fleet, run, (id, 1)).await;
        runs_in_the_end(self.fleet, id).await;
        self.serves(id, serves).await;

        self.ends(roads, id, allocation).await;
        is_gone(self.fleet, id).await;
        self.fleet.platform.story.check_while_others_work().await;
    }

    /// By itself, or with what it stands on.
    async fn ends(&mut self, roads: &Roads, id: Uuid, allocation: Uuid) {
        let path = admin(&format!("/allocations/{allocation}/release"));
        if self.number % 2 == 1 {
            let gate = self.closes_at(&roads.decommission, self.number / 2).await;
            let run = asks(self.fleet, id, "decommission", json!({})).await;
            self.strikes(gate, run).await;
            assert_eq!(settles(self.fleet, run, (id, 1)).await, RunState::Succeeded, "{}", self.fleet.said());
            self.fleet.platform.http.post(&path, json!({})).await.with(200);
            return;
        }
        let gate = self.closes_at(&roads.release, self.number / 2).await;
        let run = id_of(&self.fleet.platform.http.post(&path, json!({})).await.with(202)["workflow"]);
        self.strikes(gate, run).await;
        assert_eq!(settles(self.fleet, run, (id, 1)).await, RunState::Succeeded, "{}", self.fleet.said());
    }

    async fn serves(&self, id: Uuid, words: &str) {
        if self.victim == Victim::Engine {
            is_put_right(self.fleet, id).await;
        }
        one_serves(self.fleet, id, words).await;
    }

    async fn closes(&self, road: &Road) -> Gate {
        self.closes_at(road, self.number).await
    }

    async fn closes_at(&self, road: &Road, at: usize) -> Gate {
        Gate::close(&self.fleet.platform.story, road[at % road.len()]).await
    }

    /// Kills once the run has come so far, and starts what was killed again. A worker dies as often with its write as without.
    async fn strikes(&mut self, gate: Gate, run: Uuid) {
        gate.is_reached(async || {
            format!("{}\n{}", self.fleet.platform.story.describe(run).await, self.fleet.said())
        })
        .await;
        self.fleet.kill(self.victim);
        let loses = self.victim == Victim::Worker && self.number.is_multiple_of(2);
        gate.open(if loses { Write::Lost } else { Write::Kept }).await;
        self.fleet.start_again(self.victim).await;
        // What an agent was doing is handed out again when its lease is over, by the database's clock.
        if self.victim == Victim::Agent {
            self.fleet.platform.story.advance(Duration::from_secs(61)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_anywhere_in_a_life_costs_nothing() {
    Box::pin(through_lives(Victim::Server, 7)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_anywhere_in_a_life_costs_nothing() {
    Box::pin(through_lives(Victim::Worker, 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_anywhere_in_a_life_costs_nothing() {
    Box::pin(through_lives(Victim::Agent, 7)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_killed_anywhere_in_a_life_costs_nothing() {
    Box::pin(through_lives(Victim::Engine, 6)).await;
}
