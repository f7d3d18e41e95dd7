//! Instances in a real browser, on a real `gpuaas dev` with a node that fails and hangs when the journey asks it to: the scripts
//! of `tests/browser` say so on their stdout and go on when they are answered.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use agent::{Now, Simulated, SimulatedFault};
use chrono::Utc;
use domain::{Secret, StatusReason};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::releases::{self, post};
use crate::dev_apps::some_image;
use crate::support::agent::RunningAgent;
use crate::support::cluster::Folder;
use crate::support::process::Dev;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_deploys_an_app_repairs_it_changes_it_ends_it_and_finds_it_all_again() {
    journey("lifecycle", |dev, folder| releases::roll_out(dev, folder, "1.1.0")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_that_failed_alike_are_begun_anew_together_once_their_cause_is_gone() {
    journey("failures", |_, _| {}).await;
}

async fn journey(name: &str, prepare: impl FnOnce(&Dev, &Path)) {
    let folder = Folder::new();
    let image = some_image(&folder.0.join("image"));
    let more = ["--docker-host", "unix:///nowhere/docker.sock", "--hello-image", image.to_str().unwrap()];
    let dev = Dev::start(&folder.0.join("data"), &more);
    prepare(&dev, &folder.0);
    let driver = Simulated::new();
    let node = rack(&dev, &driver).await;

    let mut browser = tokio::process::Command::new("node")
        .arg(Path::new(ROOT).join(format!("tests/browser/{name}.mjs")))
        .env("GPUAAS_READY_FILE", folder.0.join("data.ready"))
        .current_dir(ROOT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("node runs");
    let mut answer = browser.stdin.take().expect("piped");
    let mut asked = BufReader::new(browser.stdout.take().expect("piped")).lines();
    while let Some(line) = asked.next_line().await.expect("text") {
        match line.as_str() {
            "fail" => driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed)),
            "hang" => driver.will(SimulatedFault::Hang),
            "release" => driver.release(1),
            other => panic!("{name} asks for `{other}`, which nobody here does"),
        }
        answer.write_all(b"done\n").await.expect("it listens");
    }
    let said = browser.wait_with_output().await.expect("it ends");
    let log = std::fs::read_to_string(&dev.log).unwrap_or_default();
    assert!(said.status.success(), "{}\n{log}", String::from_utf8_lossy(&said.stderr));
    node.end().await;
    dev.stop();
}

/// A node of the story's own, with room for two, and an allocation on it.
async fn rack(dev: &Dev, driver: &Simulated) -> RunningAgent {
    let made = post(dev, "/api/v1/admin/nodes", &json!({ "name": "rack-1" }));
    let token = Secret::new(made["enrolment_token"].as_str().unwrap().to_owned());
    let now: Now = Arc::new(Utc::now);
    let node = RunningAgent::join(dev.ready["api_url"].as_str().unwrap(), &token, driver, now).await;
    let part = json!({
        "project_id": dev.ready["project_id"], "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 2,
        "cpu_cores": 8, "memory_gib": 64,
    });
    post(dev, "/api/v1/admin/allocations", &part);
    node
}
