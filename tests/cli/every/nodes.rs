//! The platform's machines, and another program for one.

use agent::Simulated;
use domain::StatusReason;
use node_protocol::{Outcome, Output};
use serde_json::json;
use uuid::Uuid;

use super::Stage;
use crate::artifacts::yard::Yard;
use crate::cli::Shell;
use crate::http::admin;
use crate::nodes::update::published;
use crate::support::agent::{Door, RunningAgent};
use crate::support::node::Node;

const NONE_UNDER_WAY: &str =
    "select not exists (select from engine.run where kind = any ($2) and finished_at is null)
    and $1::uuid is not null";

#[tokio::test(flavor = "multi_thread")]
async fn every_command_about_nodes() {
    let yard = Yard::new().await;
    let shell = Shell::at(yard.address, yard.http.token());
    let program = published(&yard, "program", b"a program".to_vec()).await;
    let release = json!({ "version": "1.2.0", "artifacts": [{ "name": "gpuaas-linux-x86_64", "artifact_id": program }] });
    yard.http.post(&admin("/platform/releases"), release).await.with(201);
    let mut nodes = Vec::new();
    for name in ["gpu-1", "gpu-2", "gpu-3"] {
        nodes.push(Node::enrol(&yard.http, name).await);
    }
    let stage = Stage::of(&shell);
    let viewer = Shell::at(yard.address, yard.http.acting("viewer").token());
    stage.well("nodes_list", [&["nodes", "list"]; 3]).await;
    Stage::of(&viewer).badly("nodes_list", [&["nodes", "list"]; 3]).await;

    let words = |name| ["nodes", "update", name, "1.2.0", "--reason", "A leak is mended."];
    stage.well("nodes_update", [&words("gpu-1"), &words("gpu-2"), &words("gpu-3")]).await;
    stage.badly("nodes_update", [&["nodes", "update", "gpu-1", "9.9.9"]; 3]).await;
    let nobody = shell.ask(&["nodes", "update", "gpu-7", "1.2.0"]).await;
    assert_eq!(nobody.code, Some(4), "{nobody:?}");
    assert!(nobody.stderr.contains("no node is called gpu-7"), "{nobody:?}");
    let failed =
        Outcome::Failed { reason: StatusReason::ReadinessTimeout, message: "it did not report".into() };
    for node in &nodes {
        let task = node.takes("10s").await;
        node.answers(&task, &failed).await.with(200);
    }
    yard.story
        .until_true("the updates have ended", NONE_UNDER_WAY, Uuid::nil(), &["node.update_agent"])
        .await;

    let [node, ..] = &nodes[..] else { panic!("there are three") };
    let waits = ["nodes", "update", "gpu-1", "1.2.0", "--wait"];
    let (said, ()) = tokio::join!(shell.ask(&waits), async {
        let task = node.takes("20s").await;
        node.answers(&task, &Outcome::Succeeded { output: Output::Updated { version: "1.2.0".into() } })
            .await
            .with(200);
    });
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("succeeded"), "{said:?}");

    let door = Door::open(&yard.http).await;
    let agent = RunningAgent::enrol(&yard.http, &door, "gpu-4", &Simulated::new()).await;
    let said = shell.ask(&["nodes", "update", "gpu-4", "1.2.0", "--wait"]).await;
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.stderr.contains("the update of gpu-4 failed"), "{said:?}");
    assert!(said.stderr.contains("part of another process"), "{said:?}");
    agent.end().await;
    yard.end().await;
}
