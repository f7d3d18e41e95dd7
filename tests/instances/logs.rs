//! What an instance writes is read from its node, there and then: within bounds, by those who may, and kept nowhere.

use std::time::Duration;

use agent::{Docker, Simulated, SimulatedFault};
use axum::body::Body;
use axum::http::Request;
use engine::{RunState, Start};
use futures::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::reconcilers::clean_up::CleanUp;

use super::nodes::watch;
use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, profile};

fn logs(id: Uuid, query: &str) -> String {
    project(&format!("/app-instances/{id}/logs{query}"))
}

fn texts(told: &Value) -> Vec<&str> {
    told["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_tells_the_last_lines_and_nobody_keeps_them() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let told = platform.http.acting("viewer").get(&logs(id, "?tail=5")).await.with(200);
    assert_eq!((texts(&told), &told["truncated"]), (vec!["main: simulated, so nothing runs"], &json!(false)));
    let other = platform.http.get(&logs(id, "?member=sidecar")).await.with(200);
    assert_eq!(texts(&other), Vec::<&str>::new(), "a member that is not there wrote nothing");
    let kept: i64 = sqlx::query_scalar("select count(*) from node_tasks where kind = 'diag.logs'")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    let journal = std::fs::read_to_string(agent.folder.join("journal")).unwrap();
    assert!(kept == 0 && !journal.contains("simulated, so"), "{kept} {journal}");
    let bad = platform.http.get(&logs(id, "?tail=0&member=Main!&follow=maybe")).await.with(400);
    assert_eq!(bad["details"]["errors"].as_array().unwrap().len(), 3, "{bad:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_while_the_node_is_busy_with_the_instance() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let told = platform.http.get(&logs(id, "")).await.with(200);
    assert_eq!(texts(&told), Vec::<&str>::new(), "it has not begun to write");
    driver.release(1);
    platform.succeeds(run).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_be_asked_is_named_and_what_is_gone_has_no_log() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (ended, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    platform.decommission(ended).await;
    let refused = platform.http.get(&logs(ended, "")).await.with(409);
    assert_eq!(
        (&refused["code"], &refused["details"]["state"]),
        (&json!("state_conflict"), &json!("decommissioned"))
    );
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let folder = agent.kill().await;
    platform.story.advance(Duration::from_secs(120)).await;
    watch(&platform).await;
    let refused = platform.http.get(&logs(id, "")).await;
    assert_eq!(refused.header("retry-after"), "10");
    assert_eq!(refused.with(503)["message"], "The node gpu-1 does not answer.");
    let _ = std::fs::remove_dir_all(folder);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_only_as_long_as_its_reader_may_read_it() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let request = Request::get(logs(id, "?follow=true")).body(Body::empty()).unwrap();
    let followed = platform.http.acting("viewer").open(request).await;
    let mut lines = followed.into_body().into_data_stream();
    assert!(lines.next().await.is_some(), "it begins");
    let admin = platform.http.acting("project-admin");
    let members = admin.get(&project("/members")).await.with(200);
    let viewer = members["items"].as_array().unwrap().iter().find(|m| m["username"] == "viewer").unwrap();
    admin.delete(&project(&format!("/members/{}", viewer["id"].as_str().unwrap()))).await;
    let ended =
        tokio::time::timeout(Duration::from_secs(30), async { while lines.next().await.is_some() {} });
    assert!(ended.await.is_ok(), "whoever was removed reads on");
    agent.end().await;
    platform.end().await;
}

const NO_QUESTION: &str =
    "select not exists (select 1 from node_tasks where instance_id = $1 and kind = any ($2))";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_of_a_question_whose_asker_left() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    // The node is away for a moment, so the question lies there when its asker leaves.
    platform.door.cut(true);
    let folder = agent.kill().await;
    let request = Request::get(logs(id, "")).body(Body::empty()).unwrap();
    let is_asked = "select exists (select 1 from node_tasks where instance_id = $1 and kind = any ($2))";
    tokio::select! {
        answer = platform.http.open(request) => panic!("nobody can have answered: {}", answer.status()),
        () = platform.story.until_true("the node is asked", is_asked, id, &["diag.logs"]) => {}
    }
    platform.door.cut(false);
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.story.until_true("nothing is kept", NO_QUESTION, id, &["diag.logs"]).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_a_process_died_with_goes_by_the_hour_and_no_other_task_does() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let folder = agent.kill().await;
    let left = "insert into node_tasks (id, node_id, org_id, project_id, instance_id, kind, idempotency_key, generation, epoch,
            input, correlation_id, created_at)
        select gen_random_uuid(), node_id, org_id, project_id, instance_id, left_over.kind, gen_random_uuid()::text, 1, 0, '{}', 'c',
            engine.now() - left_over.age
        from node_tasks t, (values ('diag.logs', interval '10 minutes'), ('diag.logs', interval '1 minute'),
            ('oci.remove', interval '10 minutes')) left_over (kind, age)
        where t.instance_id = $1 and t.kind = 'oci.launch'";
    sqlx::query(left).bind(id).execute(&platform.story.pool).await.unwrap();
    let options = Start { correlation_id: "c-clock".into(), ..Start::default() };
    let run = platform.story.start_workflow(&CleanUp {}, options).await.unwrap().id;
    platform.succeeds(run).await;
    let mut kept = platform.tasks(id).await;
    kept.sort();
    assert_eq!(kept, ["diag.health_probe", "diag.logs", "oci.launch", "oci.remove"]);
    sqlx::query("delete from node_tasks where idempotency_key not like '%/do'")
        .execute(&platform.story.pool)
        .await
        .unwrap();
    let _ = std::fs::remove_dir_all(folder);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_container_is_heard_on_both_streams_and_followed_as_it_writes() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let number = platform.real_version(&engine, &engine.stage.digest, &profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    let told = platform.http.get(&logs(id, "")).await.with(200);
    let of = |text: &str| {
        told["lines"]
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["text"].as_str().unwrap().contains(text))
            .cloned()
    };
    assert_eq!(of("up").unwrap()["stream"], "stderr", "{told:#}");
    assert_eq!(of("ready").unwrap()["stream"], "stdout", "{told:#}");
    assert_eq!(texts(&platform.http.get(&logs(id, "?tail=1")).await.with(200)).len(), 1);
    let followed = reqwest::Client::new()
        .get(format!("{}{}", platform.door.url, logs(id, "?follow=true&tail=1")))
        .bearer_auth(platform.http.token())
        .send()
        .await
        .unwrap();
    assert_eq!(followed.headers()["content-type"], "text/event-stream");
    let url = platform.url(id).await;
    assert_eq!(reqwest::get(format!("{url}/nowhere")).await.unwrap().status(), 404);
    let (mut said, mut stream) = (String::new(), followed.bytes_stream());
    while !said.contains("response:404") {
        said.push_str(&String::from_utf8_lossy(&stream.next().await.expect("more to come").unwrap()));
    }
    assert_eq!(said.matches("response:404").count(), 1, "each line comes once: {said}");
    drop(stream);
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}
