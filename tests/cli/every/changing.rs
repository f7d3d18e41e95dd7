//! What changes instances, from the first deployment to the receipt that nothing is left.

use agent::SimulatedFault;
use domain::StatusReason;

use super::Stage;
use crate::cli::Shell;
use crate::cli::instances::{Town, answer};

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_changes_an_instance() {
    let town = Town::new().await;
    let (operator, admin) = (town.shell("operator"), town.shell("project-admin"));
    town.version().await;
    let stage = Stage::of(&operator);
    Stage::of(&admin).well("entitle", [&["entitle", "hello"]; 3]).await;
    stage.badly("entitle", [&["entitle", "hello"]; 3]).await;
    stage
        .well(
            "up",
            [
                &["up", "hello", "--name", "one"],
                &["up", "hello", "--name", "two"],
                &["up", "hello", "--name", "three"],
            ],
        )
        .await;
    stage.badly("up", [&["up", "hello", "--gpus", "9"]; 3]).await;
    town.version().await;
    stage.well("upgrade", [&["upgrade", "one"], &["upgrade", "two"], &["upgrade", "three"]]).await;
    stage.badly("upgrade", [&["upgrade", "nobody"]; 3]).await;
    stage.well("rollback", [&["rollback", "one"], &["rollback", "two"], &["rollback", "three"]]).await;
    stage.badly("rollback", [&["rollback", "one", "--version", "9.9.9"]; 3]).await;
    stage.shows("wait", &["wait", "one"], &["wait", "nobody"]).await;
    let down = ["down", "one", "--detach"];
    let detached = operator.ask(&down).await;
    let run = detached.stderr.rsplit(' ').next().unwrap_or_default().trim();
    assert!(detached.stderr.contains("wait for it: gpuaas wait "), "{detached:?}");
    assert_eq!(operator.ask(&["wait", run]).await.code, Some(0), "{detached:?}");
    stage.well("down", [&["down", "one"], &["down", "two"], &["down", "three"]]).await;
    stage.badly("down", [&["down", "nobody"]; 3]).await;

    for name in ["first", "second", "third"] {
        town.driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
        assert_eq!(operator.ask(&["up", "hello", "--name", name]).await.code, Some(6));
    }
    stage
        .well(
            "retry",
            [&["retry", "first", "--wait"], &["retry", "second", "--wait"], &["retry", "third", "--wait"]],
        )
        .await;
    stage.badly("retry", [&["retry", "first"]; 3]).await;

    let receipt = answer(&operator.ask(&["receipt", "one", "-o", "json"]).await);
    let key = receipt["key_id"].as_str().unwrap();
    Stage::of(&operator)
        .hiding(key, "KEY")
        .shows("receipt", &["receipt", "one"], &["receipt", "first"])
        .await;
    town.end().await;

    // From here on there is no platform.
    let away = Shell::new();
    let file = away.path("receipt.json").display().to_string();
    std::fs::write(&file, receipt.to_string()).unwrap();
    let (good, bad) =
        (["receipt", "verify", &file, "--key-id", key], ["receipt", "verify", &file, "--key-id", "other"]);
    Stage::of(&away).hiding(key, "KEY").shows("receipt_verify", &good, &bad).await;
}
