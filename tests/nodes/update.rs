//! A node's agent becomes that of another release, or stays what it is: with real processes, of which any may be killed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use agent::{Home, Simulated};
use axum::body::Body;
use axum::http::{Method, Request};
use chrono::Utc;
use clients::Clock;
use engine::RunState;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::artifacts::yard::Yard;
use crate::http::{admin, project};
use crate::support::agent::{Door, RunningAgent};
use crate::support::image::digest;
use crate::support::machine::Machine;
use crate::support::node::Node;
use crate::support::process::signal;
use crate::support::realm;

/// The platform believes what is said within a minute, and processes go by the machine's clock.
pub(super) fn clock_of(yard: &Yard) -> JoinHandle<()> {
    let clock = yard.http.realm.clock.clone();
    tokio::spawn(async move {
        loop {
            clock.advance(Utc::now() - clock.now());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}

/// A blob of this name with these bytes: published and verified as any other.
pub async fn published(yard: &Yard, name: &str, bytes: Vec<u8>) -> Uuid {
    let digest = digest(&bytes);
    let intent = yard.intent(json!({ "artifact_name": name, "artifact_kind": "blob" })).await;
    let request = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    let sent = yard.http.bearing("").answer_to(request.body(Body::from(bytes)).unwrap()).await;
    assert_eq!(sent.status, 200);
    let wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": name, "artifact_kind": "blob", "digest": digest,
    });
    let artifact = yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await.with(201);
    yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
    artifact["id"].as_str().unwrap().parse().unwrap()
}

/// A release whose program is these bytes; where they are kept.
async fn release(yard: &Yard, version: &str, bytes: Vec<u8>) -> PathBuf {
    let name = format!("program-{}", version.replace('.', "-"));
    let artifact = published(yard, &name, bytes).await;
    let wanted =
        json!({ "version": version, "artifacts": [{ "name": program_here(), "artifact_id": artifact }] });
    yard.http.post(&admin("/platform/releases"), wanted).await.with(201);
    let folder = yard.blobs.0.join(format!("projects/{}/artifacts/hello/1.0.0/{name}", realm::EXAMPLE));
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// The name of the program for this machine.
fn program_here() -> String {
    node_protocol::program_for(Some(&format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)))
}

fn script(does: &str) -> Vec<u8> {
    format!("#!/bin/sh\n{does}\n").into_bytes()
}

async fn asks(yard: &Yard, node: Uuid, version: &str) -> Uuid {
    let path = admin(&format!("/nodes/{node}/update"));
    let accepted = yard.http.post(&path, json!({ "version": version })).await.with(202);
    assert_eq!((&accepted["id"], &accepted["workflow"]["kind"]), (&json!(node), &json!("node.update_agent")));
    accepted["workflow"]["id"].as_str().unwrap().parse().unwrap()
}

/// What the run ended with, which it did not do well.
async fn fails(yard: &Yard, run: Uuid) -> (String, String) {
    assert_eq!(yard.story.ends(run).await, RunState::Compensated, "{}", yard.story.describe(run).await);
    let shown = yard.http.get(&admin(&format!("/workflows/{run}"))).await.with(200);
    let of = |name: &str| shown["error"][name].as_str().unwrap_or_default().to_owned();
    (of("code"), of("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_as_another_program_once_that_has_reported() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let mut bytes = fs::read(env!("CARGO_BIN_EXE_gpuaas")).unwrap();
    bytes.extend_from_slice(b"another release");
    let wanted = digest(&bytes);
    release(&yard, "1.2.0", bytes).await;
    let mut machine = Machine::start(&yard, 60).await;
    let run = asks(&yard, machine.id, "1.2.0").await;
    let busy =
        yard.http.post(&admin(&format!("/nodes/{}/update", machine.id)), json!({ "version": "1.2.0" })).await;
    assert_eq!(busy.with(409)["code"], "operation_in_progress");
    let state = yard.story.ends(run).await;
    assert_eq!(state, RunState::Succeeded, "{}\n{}", yard.story.describe(run).await, machine.said());

    let program = machine.home("releases").join(wanted.hex()).join("gpuaas");
    let runs = |machine: &Machine| fs::read_link(format!("/proc/{}/exe", machine.worker()?)).ok();
    assert_eq!(runs(&machine), Some(program.clone()));
    machine.reports(&yard, machine.sequence(&yard).await).await;
    let told = "select count(*) from engine.signal where run_id = $1";
    let told: i64 = sqlx::query_scalar(told).bind(run).fetch_one(&yard.story.pool).await.unwrap();
    assert_eq!(told, 1, "the task was answered once");
    // Asked for what it is already, it has nothing to try.
    let run = asks(&yard, machine.id, "1.2.0").await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", machine.said());

    // It is the agent after a crash of either process, and after a restart.
    let before = machine.worker().unwrap();
    signal("-KILL", before);
    machine.until("another process works", || machine.worker().filter(|now| *now != before)).await;
    machine.reports(&yard, machine.sequence(&yard).await).await;
    machine.kill();
    machine.start_again();
    machine.reports(&yard, machine.sequence(&yard).await).await;
    machine.until("it runs the new program", || runs(&machine).filter(|runs| *runs == program)).await;

    let (status, said) = machine.second();
    assert!(!status.success() && said.contains("another agent works in"), "{said}");
    assert!(machine.stop().success());
    Home::at(&machine.home("")).unwrap().claim(Duration::ZERO).await.expect("nobody works there any more");
    clock.abort();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_another_program_the_old_one_goes_on() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let machine = Machine::start(&yard, 2).await;
    let ends = script("echo 'I am not an agent' >&2; exit 3");
    release(&yard, "2.0.0", ends).await;
    release(&yard, "2.0.1", script("echo asleep >&2; exec sleep 600")).await;
    release(&yard, "2.0.2", b"\x7fELF, or so it says".to_vec()).await;
    let kept = release(&yard, "2.0.3", script("exit 0")).await;
    fs::write(kept, script("exit 1")).unwrap();
    let kept = release(&yard, "2.0.4", vec![b'x'; 1 << 20]).await;
    fs::File::options().write(true).open(kept).unwrap().set_len(700_000).unwrap();
    let wrong = [
        (
            "2.0.0",
            "readiness_timeout",
            "exit status: 3 before it had reported; its last words: I am not an agent",
        ),
        ("2.0.1", "readiness_timeout", "it did not report within 2 s; its last words: asleep"),
        ("2.0.2", "readiness_timeout", "release 2.0.2 was tried and given up"),
        ("2.0.3", "digest_mismatch", "not what the task says"),
        ("2.0.4", "image_pull_failed", "could not be had"),
    ];
    for (version, reason, words) in wrong {
        let run = asks(&yard, machine.id, version).await;
        let (code, message) = fails(&yard, run).await;
        assert_eq!(code, reason, "{version}: {message}");
        assert!(message.contains(words), "{version}: {message}");
        machine.reports(&yard, machine.sequence(&yard).await).await;
        let left = fs::read_dir(machine.home("releases")).map_or(0, Iterator::count);
        assert_eq!((left, machine.read("current.json")), (0, None), "{version} left nothing behind");
    }
    clock.abort();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_killed_in_the_middle_of_a_trial_goes_on_with_the_old_program() {
    let yard = Yard::new().await;
    let clock = clock_of(&yard);
    let mut machine = Machine::start(&yard, 600).await;
    let pid = machine.beside("pid");
    release(&yard, "3.0.0", script(&format!("echo $$ > {}\nexec sleep 600", pid.display()))).await;
    let run = asks(&yard, machine.id, "3.0.0").await;
    let tried = || fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok();
    let tried = machine.until("the program is tried", tried).await;
    assert_eq!(machine.read("update.json").unwrap()["stage"]["is"], "trying");
    machine.kill();
    signal("-KILL", tried);
    machine.start_again();
    let (code, message) = fails(&yard, run).await;
    assert_eq!(code, "readiness_timeout");
    assert!(message.contains("its supervisor was killed"), "{message}");
    machine.reports(&yard, machine.sequence(&yard).await).await;
    assert_eq!(machine.read("update.json").unwrap()["stage"]["is"], "refused");
    clock.abort();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_part_of_another_process_is_not_updated_alone() {
    let yard = Yard::new().await;
    let door = Door::open(&yard.http).await;
    let agent = RunningAgent::enrol(&yard.http, &door, "gpu-1", &Simulated::new()).await;
    release(&yard, "1.2.0", script("exit 0")).await;
    let run = asks(&yard, agent.id, "1.2.0").await;
    let (code, message) = fails(&yard, run).await;
    assert_eq!(code, "task_rejected");
    assert!(message.contains("part of another process, such as gpuaas dev"), "{message}");
    assert!(!agent.folder.join("releases").exists(), "nothing was downloaded");
    agent.end().await;
    yard.end().await;
}

/// The node that took it is silent, so that its lease runs out.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_was_cancelled_is_not_handed_out_again() {
    let yard = Yard::new().await;
    let node = Node::enrol(&yard.http, "gpu-1").await;
    release(&yard, "1.2.0", script("exit 0")).await;
    let run = asks(&yard, node.id, "1.2.0").await;
    assert_eq!(node.takes("10s").await.kind, "agent.self_update");
    yard.http.post(&admin(&format!("/workflows/{run}/cancel")), json!({})).await.with(202);
    assert_eq!(yard.story.ends(run).await, RunState::Cancelled);
    yard.story.advance(Duration::from_secs(61)).await;
    assert!(node.next("0s").await.is_none(), "it would become what nobody asks for any more");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_asked_for_what_it_cannot_become() {
    let yard = Yard::new().await;
    let node = Node::enrol(&yard.http, "gpu-1").await;
    let asks = async |node: Uuid, version: &str| {
        yard.http.post(&admin(&format!("/nodes/{node}/update")), json!({ "version": version })).await
    };
    assert_eq!(asks(node.id, "1.0.0").await.with(404)["code"], "release_not_found");
    assert_eq!(asks(Uuid::now_v7(), "1.0.0").await.with(404)["code"], "node_not_found");
    let other = published(&yard, "other", b"a program".to_vec()).await;
    let other =
        json!({ "version": "1.0.0", "artifacts": [{ "name": "gpuaas-plan9-vax", "artifact_id": other }] });
    yard.http.post(&admin("/platform/releases"), other).await.with(201);
    let refused: Value = asks(node.id, "1.0.0").await.with(404);
    assert_eq!(
        (&refused["code"], &refused["details"]["artifact"]),
        (&json!("artifact_not_found"), &json!("gpuaas-linux-x86_64"))
    );
    let made = yard.http.post(&admin("/nodes"), json!({ "name": "gpu-2" })).await.with(201);
    let early = asks(made["id"].as_str().unwrap().parse().unwrap(), "1.0.0").await.with(409);
    assert_eq!((&early["code"], &early["details"]["state"]), (&json!("state_conflict"), &json!("enrolling")));

    let program = published(&yard, "program", b"a program".to_vec()).await;
    let made = json!({ "version": "1.1.0", "artifacts": [{ "name": "gpuaas-linux-x86_64", "artifact_id": program }] });
    yard.http.post(&admin("/platform/releases"), made).await.with(201);
    yard.act("project-admin", &json!({ "id": program }), "revoke", json!({})).await.with(200);
    let refused = asks(node.id, "1.1.0").await.with(422);
    assert_eq!(
        (&refused["code"], &refused["details"]["state"]),
        (&json!("artifact_untrusted"), &json!("revoked"))
    );
    assert!(node.next("0s").await.is_none(), "nothing was asked of the node");
    yard.end().await;
}
