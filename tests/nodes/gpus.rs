//! What an engine is asked for when an instance has GPUs: those, by their own names, and no others. The engine is real and keeps
//! what it was asked; the machine has no GPU, so it cannot start what it made. And how busy they are. Nothing here ran on a GPU.

use agent::{Docker, Driver, Simulated, Told};
use node_protocol::Secrets;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::http::admin;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, profile};

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_is_asked_for_the_gpus_of_an_instance_by_their_names() {
    let engine = Engine::start().await;
    let docker = Docker::connect(&engine.host()).await.unwrap();
    let instance = Uuid::now_v7();
    let mut workload = engine.stage.workload(instance, 1);
    workload.gpus = vec!["GPU-5a".to_owned(), "GPU-7c".to_owned()];
    workload.resources.gpu_count = 2;
    docker.network(Uuid::nil(), &workload).await.unwrap();
    let (told, _) = Told::new(CancellationToken::new());
    let fault = docker.launch(&workload, &Secrets::default(), &told).await.unwrap_err();
    assert!(fault.message.contains("could not select device driver"), "{fault}");

    let format = "{{json .HostConfig.DeviceRequests}}";
    let kept = engine.docker(&["inspect", "--format", format, &workload.container_name()]).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let asked = json!({
        "Driver": "nvidia", "Count": 0, "DeviceIDs": ["GPU-5a", "GPU-7c"], "Capabilities": [["gpu"]], "Options": null,
    });
    assert_eq!(kept, json!([asked]));
    docker.remove(instance, node_protocol::Generations::UpTo(1), true).await.unwrap();
    assert_eq!(engine.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_tells_how_busy_its_gpus_are() {
    let platform = Platform::new().await;
    let driver = Simulated::new().with_gpus(3);
    let (agent, allocation) = platform.node("gpu-1", &driver, 3).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 2).await;
    let told = "select report -> 'gpus' @> '[{ \"index\": 1, \"busy_percent\": 50 }, { \"index\": 2, \"busy_percent\": 0 }]'
        and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("the node tells of its GPUs", told, agent.id, &[]).await;
    let node = platform.http.get(&admin(&format!("/nodes/{}", agent.id))).await.with(200);
    assert_eq!(node["gpus"][0], json!({ "index": 0, "busy_percent": 50, "memory_used_bytes": 40_u64 << 30 }));
    platform.decommission(id).await;
    let idle = "select not report -> 'gpus' @> '[{ \"busy_percent\": 50 }]' and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("they are idle again", idle, agent.id, &[]).await;
    agent.end().await;
    platform.end().await;
}
