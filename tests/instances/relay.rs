//! A real container reaches the platform through its node's relay and nothing else of the node: neither what is not the
//! public API, nor another instance.

use std::process::Command;

use agent::{Docker, RELAY_PORT, SPARE_NETWORKS};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::{Engine, PORT};
use crate::support::platform::{Platform, id_of, profile};

fn container(id: Uuid) -> String {
    format!("gpuaas-{id}-main-g1")
}

fn inside(engine: &Engine, id: Uuid, script: &str) -> Result<String, String> {
    engine.docker(&["exec", &container(id), "/bin/busybox", "sh", "-c", script])
}

/// What the container was started with.
fn variable(engine: &Engine, id: Uuid, name: &str) -> String {
    let format = "{{range .Config.Env}}{{println .}}{{end}}";
    let all = engine.docker(&["inspect", "--format", format, &container(id)]).unwrap();
    // A key has several lines.
    let (_, rest) = all.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name} is not there"));
    let end = rest.find("\nGPUAAS_").or_else(|| rest.find("\nPATH=")).unwrap_or(rest.len());
    rest[..end].trim_end().to_owned()
}

/// Asks from where the container stands: in its network, with a client that its image need not have. Answers status and body.
fn asks(engine: &Engine, id: Uuid, url: &str, more: &[&str]) -> Result<(String, String), String> {
    let pid = engine.docker(&["inspect", "--format", "{{.State.Pid}}", &container(id)])?;
    let asked = Command::new("nsenter")
        .args([
            "-t",
            &pid,
            "-n",
            "curl",
            "-sS",
            "--noproxy",
            "*",
            "--path-as-is",
            "-m",
            "3",
            "-w",
            "\n%{http_code}",
        ])
        .args(more)
        .arg(url)
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let (body, status) = said.rsplit_once('\n').unwrap_or_default();
    if asked.status.success() { Ok((status.to_owned(), body.to_owned())) } else { Err(said) }
}

/// No network is being made.
async fn reserve_is_full(engine: &Engine) {
    while engine.reserve().len() < SPARE_NETWORKS {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_reaches_the_public_api_through_its_relay_and_nothing_else_of_the_node() {
    let engine = Engine::start().await;
    let platform = Platform::with_registry().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (agent, allocation) = platform.node("gpu-1", &driver, 0).await;
    let mut wanted = profile(PORT, 30);
    wanted["packages"] = json!(["pandas>=2,<3"]);
    let number = platform.real_version(&engine, &engine.stage.digest, &wanted).await;
    let body = json!({
        "app_slug": "hello", "version": number, "display_name": "notebook", "packages": ["ipywidgets[test]~=8.1"],
        "placement_intent": { "allocation_id": allocation },
    });
    reserve_is_full(&engine).await;
    let made = platform.create(body).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    let id = id_of(&made);
    let (other, run) = platform.deploy_version(allocation, &number, 0).await;
    platform.succeeds(run).await;
    for id in [id, other] {
        let name = ["inspect", "--format", "{{.HostConfig.NetworkMode}}", &container(id)];
        assert!(engine.docker(&name).unwrap().starts_with("gpuaas-spare-"), "it was made ahead");
    }

    let relay = variable(&engine, id, "GPUAAS_BASE_URL");
    let schema = format!("{relay}/api/v1/apps/manifest-schema");
    let (status, body) = asks(&engine, id, &schema, &[]).unwrap();
    assert!(status == "200" && body.contains("json-schema.org"), "{status} {body}");
    for path in ["/metrics", "/internal/v1/nodes/enroll", "/api/v1/../../metrics", "/console/login"] {
        let (status, body) = asks(&engine, id, &format!("{relay}{path}"), &[]).unwrap();
        assert!(status == "404" && body.contains("route_not_found"), "{path}: {status} {body}");
    }
    let json = ["-H", "content-type: application/json"];
    let of = |name: &str| variable(&engine, id, name);
    let proof = json!({
        "service_account_id": of("GPUAAS_SERVICE_ACCOUNT_ID"), "key_id": of("GPUAAS_KEY_ID"),
        "private_key_pem": of("GPUAAS_PRIVATE_KEY"),
    });
    let token = format!("{relay}/api/v1/auth/service-account/token");
    let (_, minted) = asks(&engine, id, &token, &[json[0], json[1], "-d", &proof.to_string()]).unwrap();
    let minted: Value = serde_json::from_str(&minted).unwrap();
    let bearer = format!("authorization: Bearer {}", minted["access_token"].as_str().expect("a token"));
    let beat = format!("{relay}{}", project(&format!("/app-instances/{id}/heartbeat")));
    let said = json!({ "key_id": of("GPUAAS_KEY_ID") }).to_string();
    let (status, body) = asks(&engine, id, &beat, &[json[0], json[1], "-H", &bearer, "-d", &said]).unwrap();
    assert_eq!(status, "204", "it speaks of itself: {body}");
    let heard: i64 =
        sqlx::query_scalar("select generation from app_instance_heartbeats where instance_id = $1")
            .bind(id)
            .fetch_one(&platform.story.pool)
            .await
            .unwrap();
    assert_eq!(heard, 1);

    let address = |format: &str| {
        engine.docker(&[
            "inspect",
            "--format",
            &format!("{{{{range .NetworkSettings.Networks}}}}{{{{.{format}}}}}{{{{end}}}}"),
            &container(other),
        ])
    };
    let theirs = format!("http://{}:{RELAY_PORT}/api/v1/apps/manifest-schema", address("Gateway").unwrap());
    let refused = asks(&engine, id, &theirs, &[]).map_or(true, |(status, _)| status == "403");
    assert!(refused, "another instance's relay is not for it");
    // While it makes a network the engine takes the rule that keeps networks apart out for a moment.
    reserve_is_full(&engine).await;
    assert!(
        asks(&engine, id, &format!("http://{}:{PORT}/index.html", address("IPAddress").unwrap()), &[])
            .is_err()
    );
    assert!(
        inside(&engine, id, "/bin/busybox ls /var/run/docker.sock").is_err(),
        "there is no engine in there"
    );

    let packages = inside(&engine, id, "/bin/busybox cat /run/gpuaas/packages.json").unwrap();
    assert_eq!(packages, r#"["pandas>=2,<3","ipywidgets[test]~=8.1"]"#);
    assert!(
        inside(&engine, id, "echo x > /run/gpuaas/packages.json").is_err(),
        "they are not for it to change"
    );

    let agent = RunningAgent::again(&platform.http, agent.kill().await, &driver);
    while asks(&engine, id, &schema, &[]).is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for id in [id, other] {
        platform.decommission(id).await;
    }
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    assert!(!std::path::Path::new("/dev/shm/gpuaas").join(container(id)).exists(), "its files went with it");
    agent.end().await;
    assert_eq!(engine.reserve(), Vec::<String>::new(), "nothing at all is left");
    platform.end().await;
}
