//! Images go from a node once nothing there needs them; what an instance may return to stays, so a rollback needs no registry.

use std::time::Duration;

use agent::{Docker, Driver, Simulated, Told};
use chrono::TimeDelta;
use node_protocol::{Generations, Image, Secrets};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, profile};
use crate::support::registry::shelve;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_goes_once_nothing_runs_it_or_may_return_to_it() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(platform.version(&profile(PORT, 30)).await);
    }
    let [first, second, third] = numbers.as_slice() else { panic!("{numbers:?}") };
    let (id, run) = platform.deploy_version(allocation, first, 1).await;
    platform.succeeds(run).await;
    platform.act(id, "upgrade", json!({ "target_version": second })).await;
    let (other, run) = platform.deploy_version(allocation, third, 1).await;
    platform.succeeds(run).await;
    platform.decommission(other).await;
    assert_eq!(driver.images().len(), 3, "what was run a moment ago may be asked for again");

    platform.http.realm.clock.advance(TimeDelta::minutes(11));
    let mut kept = [first, second].map(|number| shelve(number).to_string());
    kept.sort();
    while driver.images().len() > kept.len() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(driver.images(), kept);
    let back = platform.act(id, "rollback", json!({})).await;
    assert_eq!(back["version"], json!(first), "{back:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_keeps_an_image_that_a_container_needs() {
    let engine = Engine::start().await;
    let docker = Docker::connect(&engine.host()).await.unwrap();
    let instance = Uuid::now_v7();
    let workload = engine.stage.workload(instance, 1);
    let image = Image { registry: None, ..workload.image.clone() };
    let is_there = || engine.docker(&["image", "inspect", &image.reference()]).is_ok();
    docker.network(Uuid::nil(), &workload).await.unwrap();
    let (told, _) = Told::new(CancellationToken::new());
    docker.launch(&workload, &Secrets::default(), &told).await.unwrap();
    assert_eq!((docker.remove_image(&image).await, is_there()), (Ok(false), true));
    docker.remove(instance, Generations::UpTo(1), true).await.unwrap();
    assert_eq!((docker.remove_image(&image).await, is_there()), (Ok(true), false));
    assert_eq!(docker.remove_image(&image).await, Ok(true), "what is gone is gone");
}
