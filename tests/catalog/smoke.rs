//! A version with tests of its own passes them on a fresh instance before anybody can deploy it, and that instance is gone
//! afterwards, whatever the tests found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::{Driver, DriverFault, Network, Seen, Simulated, SimulatedFault, Tail, Told};
use axum::Router;
use axum::http::{StatusCode, Uri};
use chrono::{DateTime, Utc};
use domain::StatusReason;
use engine::RunState;
use node_protocol::{ControlAction, Generations, Launched, Secrets, Usage, Workload};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::{act, acts, catalog};
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

/// A staged version with two tests: its number.
async fn staged(platform: &Platform) -> String {
    let smoke = json!([
        { "name": "it is healthy", "path": "/healthz", "expect_body_contains": "ok" },
        { "name": "the page greets", "path": "/", "expect_body_contains": "hello" },
    ]);
    let number = platform.draft(json!({ "runtime_profile": profile(PORT, 30), "smoke": smoke })).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    acts(&platform.http, "hello", &number, "stage", json!({})).await;
    number
}

async fn canary(platform: &Platform, number: &str) -> Value {
    act(&platform.http, "hello", number, "canary", json!({ "percent": 100 })).await.with(200)
}

/// The smoke gate of the move to canary.
async fn gate(platform: &Platform, number: &str) -> Value {
    let all = platform.http.get(&catalog(&format!("/hello/versions/{number}/gates"))).await.with(200);
    let moves = all["transitions"].as_array().unwrap();
    let gates = &moves.iter().find(|one| one["action"] == "canary").unwrap()["gates"];
    gates.as_array().unwrap().iter().find(|gate| gate["check"] == "smoke_passed").unwrap().clone()
}

/// What the tests ran on holds nothing any more.
async fn is_gone(platform: &Platform) {
    let all = platform.http.get(&project("/app-instances")).await.with(200);
    for instance in all["items"].as_array().unwrap() {
        assert_eq!(instance["status"], "decommissioned", "{instance:#}");
        assert_eq!(platform.held(id_of(instance)).await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_begins_with_the_manifests_own_tests() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 0).await;
    let number = staged(&platform).await;
    let before = gate(&platform, &number).await;
    assert_eq!((&before["light"], &before["evidence"]["last_run"]), (&json!("red"), &json!(null)));
    acts(&platform.http, "hello", &number, "canary", json!({ "percent": 10 })).await;
    let passed = gate(&platform, &number).await;
    assert_eq!(passed["light"], "green");
    let evidence = &passed["evidence"]["last_run"]["evidence"];
    let told: Vec<&str> =
        evidence["requests"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(told, ["it is healthy", "the page greets"]);
    assert_eq!(evidence["requests"][0]["message"], "was not asked: this node only simulates");
    is_gone(&platform).await;
    let throwaway: Uuid = evidence["app_instance_id"].as_str().unwrap().parse().unwrap();
    let events = ["requested", "deploying", "running", "decommission_requested", "decommissioned"];
    assert_eq!(platform.events(throwaway).await, events);
    platform.http.get(&project(&format!("/app-instances/{throwaway}/receipt"))).await.with(200);

    acts(&platform.http, "hello", &number, "canary", json!({ "percent": 50 })).await;
    assert_eq!(driver.launches(), 1, "what passed once is not asked again");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_needs_a_config_is_tested_with_the_manifests_own() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 0).await;
    let mut profile = profile(PORT, 30);
    profile["launch_parameters"] =
        json!([{ "name": "model", "env": "MODEL" }, { "name": "size", "env": "SIZE" }]);
    let schema = json!({
        "type": "object", "required": ["model"], "additionalProperties": false,
        "properties": { "model": { "type": "string" }, "size": { "type": "integer", "default": 3 } },
    });
    let number = platform
        .draft(json!({
            "runtime_profile": profile, "config_schema": schema, "smoke_config": { "model": "small" },
            "smoke": [{ "name": "it is healthy", "path": "/healthz" }],
        }))
        .await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    acts(&platform.http, "hello", &number, "stage", json!({})).await;
    acts(&platform.http, "hello", &number, "canary", json!({ "percent": 100 })).await;
    assert_eq!(gate(&platform, &number).await["light"], "green");
    let input: Value = sqlx::query_scalar("select input from node_tasks where kind = 'oci.launch'")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    let env = &input["workload"]["env"];
    assert_eq!((&env["MODEL"], &env["SIZE"]), (&json!("small"), &json!("3")));
    is_gone(&platform).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_whose_tests_fail_stays_staged_and_says_which_request() {
    let platform = Platform::new().await;
    let driver = Answering::start().await;
    let (agent, _) = platform.node("gpu-1", &driver, 0).await;
    let number = staged(&platform).await;
    let refused = canary(&platform, &number).await;
    assert_eq!(
        (&refused["status"], &refused["workflow"]["status"]),
        (&json!("staged"), &json!("compensated"))
    );
    let run = platform.http.get(refused["workflow"]["href"].as_str().unwrap()).await.with(200);
    let why = "The manifest's tests failed: `the page greets` answered 404 where 200 is expected.";
    assert_eq!((&run["error"]["code"], &run["error"]["message"]), (&json!("gate_red"), &json!(why)));
    let red = gate(&platform, &number).await;
    assert_eq!((&red["light"], &red["message"]), (&json!("red"), &json!(why)));
    let requests = &red["evidence"]["last_run"]["evidence"]["requests"];
    assert_eq!((&requests[0]["passed"], &requests[1]["status"]), (&json!(true), &json!(404)));
    is_gone(&platform).await;

    driver.greets.store(true, Ordering::SeqCst);
    assert_eq!(canary(&platform, &number).await["status"], "canary", "asking again asks the tests again");
    is_gone(&platform).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_allocation_of_its_owner_a_version_cannot_be_smoked() {
    let platform = Platform::new().await;
    let number = staged(&platform).await;
    let refused = canary(&platform, &number).await;
    assert_eq!((&refused["status"], &refused["workflow"]["status"]), (&json!("staged"), &json!("failed")));
    let red = gate(&platform, &number).await;
    let message = red["message"].as_str().unwrap();
    assert!(message.contains("no active allocation of the owning project to smoke it on"), "{message}");
    let run = platform.http.get(refused["workflow"]["href"].as_str().unwrap()).await.with(200);
    assert_eq!(
        (&run["error"]["code"], run["error"]["message"].as_str()),
        (&json!("gate_red"), Some(message))
    );
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_does_not_come_to_run_fails_its_tests() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 0).await;
    let number = staged(&platform).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    assert_eq!(canary(&platform, &number).await["status"], "staged");
    let message = gate(&platform, &number).await["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The manifest's tests failed: no instance of it came to run"), "{message}");
    is_gone(&platform).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_canary_takes_the_instance_of_its_tests_away() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 0).await;
    let number = staged(&platform).await;
    driver.will(SimulatedFault::Hang);
    let path = admin(&format!("/apps/catalog/hello/versions/{number}/canary"));
    let asked = platform.http.post(&path, json!({ "percent": 100 })).await.with(202);
    let run = id_of(&asked["workflow"]);
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.http.post(&admin(&format!("/workflows/{run}/cancel")), json!({})).await.with(202);
    driver.release(1);
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    is_gone(&platform).await;
    assert_eq!(gate(&platform, &number).await["evidence"]["last_run"], json!(null), "nothing was found out");
    agent.end().await;
    platform.end().await;
}

/// A driver whose workloads answer: each of their ports is one server of this story. It greets when it is told to.
#[derive(Clone)]
struct Answering {
    inner: Simulated,
    port: u16,
    greets: Arc<AtomicBool>,
}

impl Answering {
    async fn start() -> Answering {
        let greets = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&greets);
        let page = move |uri: Uri| {
            let greets = asked.load(Ordering::SeqCst);
            async move {
                match uri.path() {
                    "/healthz" | "/index.html" => (StatusCode::OK, "ok"),
                    "/" if greets => (StatusCode::OK, "hello"),
                    _ => (StatusCode::NOT_FOUND, "nothing"),
                }
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(page)).await });
        Answering { inner: Simulated::new(), port, greets }
    }
}

impl Driver for Answering {
    fn name(&self) -> &'static str {
        "docker"
    }

    async fn network(&self, node: Uuid, workload: &Workload) -> Result<Option<Network>, DriverFault> {
        self.inner.network(node, workload).await
    }

    async fn networks(&self) -> Result<Vec<(Uuid, Network)>, DriverFault> {
        self.inner.networks().await
    }

    async fn launch(
        &self,
        workload: &Workload,
        secrets: &Secrets,
        told: &Told,
    ) -> Result<Launched, DriverFault> {
        self.inner.launch(workload, secrets, told).await
    }

    async fn control(
        &self,
        instance: Uuid,
        generation: i64,
        action: ControlAction,
    ) -> Result<(), DriverFault> {
        self.inner.control(instance, generation, action).await
    }

    async fn remove(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> Result<Vec<String>, DriverFault> {
        self.inner.remove(instance, generations, for_good).await
    }

    async fn seen(&self) -> Result<Vec<Seen>, DriverFault> {
        let seen = self.inner.seen().await?;
        let bound = BTreeMap::from([(PORT, self.port)]);
        Ok(seen.into_iter().map(|seen| Seen { bound: bound.clone(), ..seen }).collect())
    }

    async fn usage(&self, seen: &Seen) -> Usage {
        self.inner.usage(seen).await
    }

    async fn leftovers(&self, instance: Uuid) -> Result<Vec<String>, DriverFault> {
        self.inner.leftovers(instance).await
    }

    async fn logs(
        &self,
        instance: Uuid,
        member: &str,
        lines: u32,
        since: Option<DateTime<Utc>>,
    ) -> Result<Tail, DriverFault> {
        self.inner.logs(instance, member, lines, since).await
    }
}
