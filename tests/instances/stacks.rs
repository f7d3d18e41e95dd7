//! Curated Compose stacks: the platform renders the file, the node runs its members on a network of their own, and whoever
//! asks sees what was rendered. The model server is a stand-in that speaks the routes people ask for.

use agent::{Docker, Simulated};
use domain::manifest::{self, Format};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, id_of, profile};

/// A server and a helper beside it, both from one image.
pub(super) fn stack() -> Value {
    json!({
        "runtime_profile": {
            "kind": "docker_compose", "renderer": "vllm_openai", "read_only_root": true,
            "ports": [{ "name": "openai", "container": PORT }],
            "health": { "kind": "http", "path": "/health", "interval_seconds": 1, "timeout_seconds": 1, "grace_seconds": 30 },
            "resources": { "gpu_count": { "min": 0, "default": 0, "max": 8 },
                           "cpu_cores": { "min": 2, "default": 2, "max": 8 },
                           "memory_gib": { "min": 2, "default": 2, "max": 8 } },
            "launch_parameters": [
                { "name": "model", "argument": "--model" }, { "name": "hub_token", "argument": "--hub-token" },
            ],
            "topology": {
                "services": [{ "name": "server", "gpu": true }, { "name": "helper" }],
                "endpoints": [{ "name": "openai", "service": "server", "port": PORT }],
                "mounts": [{ "service": "server", "path": "/cache" }],
            },
        },
        "config_schema": {
            "type": "object",
            "properties": { "model": { "type": "string" }, "hub_token": { "type": "string" } },
        },
        "smoke": [{ "name": "models are listed", "path": "/v1/models", "expect_body_contains": "first" }],
    })
}

pub(super) fn wish(number: &str, allocation: Uuid, config: &Value) -> Value {
    json!({
        "app_slug": "hello", "version": number, "display_name": "a model", "config": config,
        "placement_intent": { "allocation_id": allocation },
    })
}

async fn rendered(platform: &Platform, id: Uuid) -> (Value, Value) {
    let told = platform.http.get(&project(&format!("/app-instances/{id}/rendered"))).await.with(200);
    let text = told["compose"].as_str().unwrap();
    let file = manifest::value(text, Format::Yaml).unwrap_or_else(|_| panic!("no YAML: {text}"));
    (told, file)
}

async fn asked(platform: &Platform, id: Uuid, path: &str) -> String {
    let answer = reqwest::get(format!("{}{path}", platform.url(id).await)).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    answer.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_stack_runs_as_it_was_rendered_and_is_taken_away_without_a_trace() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let image = engine.model_server("first").unwrap();
    let number = platform.real_version_with(&engine, &image, stack()).await;
    let config = json!({ "model": "org/first", "hub_token": "hidden-word" });
    let made = platform.create(wish(&number, allocation, &config)).await.with(202);
    let id = id_of(&made);
    platform.succeeds(id_of(&made["workflow"])).await;

    assert!(asked(&platform, id, "/v1/models").await.contains("first"));
    asked(&platform, id, "/health").await;
    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    assert_eq!(access["endpoints"][0]["name"], "openai");

    // What runs is what the file says, found by the labels that Compose's own tools look for.
    let label = format!("label=com.docker.compose.project=gpuaas-{id}");
    let found = engine.docker(&["ps", "--filter", &label, "--format", "{{.Names}}"]).unwrap();
    let mut found: Vec<&str> = found.lines().collect();
    found.sort_unstable();
    let (told, file) = rendered(&platform, id).await;
    let services = file["services"].as_object().unwrap();
    let names: Vec<&str> = services.values().map(|one| one["container_name"].as_str().unwrap()).collect();
    assert_eq!(found, names, "{told:#}");
    for (name, service) in services {
        let container = service["container_name"].as_str().unwrap();
        let shown = engine.docker(&["inspect", container]).unwrap();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let (shown, host) = (&shown[0], &shown[0]["HostConfig"]);
        assert_eq!(shown["Config"]["Image"], service["image"], "{name}");
        assert_eq!(shown["Config"]["Labels"]["com.docker.compose.service"], *name);
        assert_eq!(host["ReadonlyRootfs"], service["read_only"]);
        let limits = &service["deploy"]["resources"]["limits"];
        let memory = limits["memory"].as_str().unwrap().trim_end_matches('g').parse::<u64>().unwrap();
        assert_eq!(host["Memory"], memory << 30);
        assert_eq!(host["CapDrop"], service["cap_drop"]);
    }
    let server = &services["server"];
    assert_eq!(
        server["command"],
        json!([
            "--model",
            "org/first",
            "--hub-token",
            "[redacted]",
            "--host",
            "0.0.0.0",
            "--port",
            PORT.to_string()
        ])
    );
    assert_eq!(server["environment"]["GPUAAS_PRIVATE_KEY"], "[redacted]");
    assert!(
        !told.to_string().contains("hidden-word") && !told.to_string().contains("PRIVATE KEY"),
        "{told:#}"
    );

    // Members know each other by name, and the server is heard unless another is named.
    let helper = services["helper"]["container_name"].as_str().unwrap();
    let url = format!("http://server:{PORT}/v1/models");
    let heard = engine.docker(&["exec", helper, "/bin/busybox", "wget", "-q", "-O", "-", &url]).unwrap();
    assert!(heard.contains("first"), "{heard}");
    let logs = platform.http.get(&project(&format!("/app-instances/{id}/logs"))).await.with(200);
    assert!(logs.to_string().contains("called with --model org/first"), "{logs:#}");
    let members = platform.http.get(&project(&format!("/app-instances/{id}/members"))).await.with(200);
    let mut keys: Vec<&str> = members["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["component_key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["helper", "server"], "{members:#}");

    // The next version finds what the first one fetched.
    let image = engine.model_server("second").unwrap();
    let mut next = stack();
    next["smoke"] = json!([]);
    let next = platform.real_version_with(&engine, &image, next).await;
    let upgraded = platform.act(id, "upgrade", json!({ "target_version": next })).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    assert!(asked(&platform, id, "/v1/models").await.contains("second"));
    let (told, file) = rendered(&platform, id).await;
    assert_eq!((&told["version"], &told["generation"]), (&json!(next), &json!(2)));
    let server = file["services"]["server"]["container_name"].as_str().unwrap();
    let kept = engine.docker(&["exec", server, "/bin/busybox", "cat", "/cache/models"]).unwrap();
    assert_eq!(kept, "first\nsecond");

    let ended = platform.decommission(id).await;
    assert_eq!(ended["status"], "decommissioned", "{ended:#}");
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_no_file_can_be_rendered_for_is_refused_with_its_field() {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let mut narrow = stack();
    narrow["runtime_profile"]["resources"]["cpu_cores"] = json!({ "min": 1, "default": 1, "max": 8 });
    narrow["smoke"] = json!([]);
    let number = platform.draft(narrow).await;
    platform.artifact(&number, &crate::support::registry::shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    let refused = platform.create(wish(&number, allocation, &json!({}))).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/resources/cpu_cores", "{refused:#}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_stack_is_rendered() {
    let platform = Platform::new().await;
    let (agent, allocation) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let none = platform.http.get(&project(&format!("/app-instances/{id}/rendered"))).await.with(409);
    assert_eq!(none["code"], "state_conflict");
    agent.end().await;
    platform.end().await;
}
