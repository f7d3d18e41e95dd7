//! Notebooks as a project runs them: the reference app built from Debian's packages and Python's index, pushed, verified, deployed
//! on a real engine with a package that the launch names, healthy, and reached where the platform says. Only under
//! `./dev test --slow`: the build takes minutes and asks the network.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use agent::Docker;
use domain::manifest::{self, Format};
use serde_json::{Value, json};

use crate::http::{admin, project};
use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::platform::{Platform, id_of};
use crate::support::realm::EXAMPLE;
use crate::support::slow::is_slow;

/// In no image and no manifest: it is there because the launch asked for it.
const PACKAGE: &str = "colorama>=0.4,<0.5";

/// What an engine makes the image of, from nothing but packages.
fn build(folder: &Path) {
    let (begun, script) =
        (Instant::now(), Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/jupyterlab/build"));
    let built = Command::new(script).arg(folder).output().expect("the build");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    eprintln!("built in {} s", begun.elapsed().as_secs());
}

/// The reference app, with the one image that any machine can run.
fn reference() -> Value {
    let text = include_str!("../../apps/jupyterlab/manifest.yaml");
    let mut whole = manifest::value(text, Format::Yaml).unwrap_or_else(|_| panic!("no YAML: {text}"));
    let version = &mut whole["version"];
    version["artifacts"].as_array_mut().unwrap().retain(|artifact| artifact["variant"] == "cpu");
    version["runtime_profile"]["variants"].as_array_mut().unwrap().retain(|variant| variant["name"] == "cpu");
    // Small enough for any machine that tells stories.
    version["runtime_profile"]["resources"]["cpu_cores"]["default"] = json!(1);
    version["runtime_profile"]["resources"]["memory_gib"]["default"] = json!(2);
    whole
}

/// Submitted, pushed, verified, promoted, rolled out and entitled.
async fn publish(platform: &Platform, engine: &Engine, image: &str) -> String {
    let whole = reference();
    let number = whole["version"]["version"].as_str().unwrap().to_owned();
    let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    platform.http.post(&path, whole).await.with(201);
    let publisher = platform.http.acting("publisher");
    let slot = json!({ "app_slug": "jupyterlab", "app_version": number, "variant": "cpu" });
    let intent = publisher.post(&project("/app-artifacts/publish-intents"), slot.clone()).await.with(201);
    let mut registered = slot;
    registered["digest"] = json!(platform.push(engine, image, &intent, &number).await);
    let id = id_of(&publisher.post(&project("/app-artifacts"), registered).await.with(201));
    let artifact = project(&format!("/app-artifacts/{id}"));
    let verified = publisher.post(&format!("{artifact}/verify"), json!({})).await.with(200);
    assert_eq!(verified["trust_state"], "verified");
    let promoted =
        publisher.post(&format!("{artifact}/promote?wait=60s"), json!({ "channel": "prod" })).await;
    promoted.with(200);
    for (verb, body) in [("stage", json!({})), ("canary", json!({ "percent": 100 })), ("publish", json!({}))]
    {
        // Its own tests are asked on the way to canary, of an instance that is pulled and started for them.
        let path = admin(&format!("/apps/catalog/jupyterlab/versions/{number}/{verb}"));
        let moved = platform.http.post(&path, body).await.with(202);
        platform.succeeds(id_of(&moved["workflow"])).await;
    }
    let path = project("/apps/entitlements/jupyterlab");
    platform.http.acting("project-admin").put(&path, json!({ "enabled": true })).await.with(200);
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn jupyterlab_is_built_from_packages_and_serves_with_those_that_a_launch_names() {
    if !is_slow() {
        return;
    }
    let folder = Folder::new();
    // Before it is an engine's turn: others wait for theirs.
    build(&folder.0);
    let engine = Engine::start().await;
    let image = engine.docker(&["build", "--quiet", &folder.0.display().to_string()]).expect("an image");
    let platform = Platform::with_registry().await;
    let docker = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &docker, 0).await;
    let number = publish(&platform, &engine, &image).await;
    let wish = json!({
        "app_slug": "jupyterlab", "version": number, "display_name": "notebook", "packages": [PACKAGE],
        "placement_intent": { "allocation_id": allocation },
        "resources": { "gpu_count": 0, "cpu_cores": 1, "memory_gib": 2 },
    });
    let begun = Instant::now();
    let made = platform.create(wish).await.with(202);
    let (id, run) = (id_of(&made), id_of(&made["workflow"]));
    platform.succeeds(run).await;
    eprintln!("deployed in {} s", begun.elapsed().as_secs());

    let access = platform.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
    assert_eq!(access["endpoints"][0]["health"], "healthy", "{access:#}");
    let url = access["endpoints"][0]["url"].as_str().unwrap();
    let asked = async |path: &str| reqwest::get(format!("{url}{path}")).await.unwrap().text().await.unwrap();
    let told: Value = serde_json::from_str(&asked("/api").await).unwrap();
    assert!(told["version"].is_string(), "{told:#}");
    assert!(asked("/lab").await.contains("JupyterLab"), "the page for people is there");
    let said = platform.http.get(&project(&format!("/app-instances/{id}/logs?tail=1000"))).await.with(200);
    assert!(said.to_string().contains("Successfully installed colorama"), "{said:#}");
    platform.decommission(id).await;
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
