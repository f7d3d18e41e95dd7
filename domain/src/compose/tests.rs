//! Rendering, held against files that a person has read: `golden/*.yaml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Facts, Unrenderable, compose_file, member_of, members, render, shown};
use crate::manifest::{self, Format, Manifest, Renderer, RuntimeProfile};
use crate::placement::Grant;
use crate::yaml;

const GRANT: Grant = Grant { gpu_count: 2, cpu_cores: 16, memory_gib: 128, host_port: None };

fn read(text: &str) -> Manifest {
    manifest::read(text, Format::Yaml).expect("a manifest").manifest
}

fn profile(manifest: &Manifest) -> RuntimeProfile {
    manifest.version.runtime_profile.clone().expect("a profile")
}

/// The file for a launch of the manifest, or why there is none.
fn rendered(manifest: &Manifest, config: &Value, grant: Grant) -> Result<Value, Vec<Unrenderable>> {
    let profile = profile(manifest);
    let config = manifest.version.effective_config(config);
    let name = |artifact: &str| {
        let digit = artifact.bytes().next().map_or('0', |byte| char::from(b'a' + byte % 6));
        format!("registry.example/gpuaas/apps/p/a@sha256:{}", digit.to_string().repeat(64))
    };
    let images = ["runtime", "proxy"].map(|artifact| (artifact.to_owned(), name(artifact)));
    let named = profile.ports.iter().enumerate().map(|(place, port)| port.endpoint_name(place));
    let ports: BTreeMap<String, u16> = named.zip(30_000..).collect();
    let facts = Facts {
        instance_id: Uuid::from_u128(7),
        generation: 3,
        profile: &profile,
        config: &config,
        grant,
        images: &BTreeMap::from(images),
        ports: &ports,
        gpus: &["GPU-5a", "GPU-5b"].map(str::to_owned)[..grant.gpu_count as usize],
    };
    let stack = render(Renderer::VllmOpenai, &facts)?;
    assert_eq!(stack.services.iter().map(|one| one.name.clone()).collect::<Vec<_>>(), members(&profile));
    let given = ["GPUAAS_BASE_URL", "GPUAAS_PRIVATE_KEY", "HF_TOKEN"].map(str::to_owned);
    Ok(compose_file(&stack, &given))
}

#[expect(clippy::disallowed_methods)]
fn is_golden(name: &str, file: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/compose/golden").join(name);
    let now = yaml::document(file);
    if std::env::var("UPDATE_SNAPSHOTS").is_ok() {
        std::fs::write(&path, &now).expect("written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == now,
        "{name} is stale: run the tests with UPDATE_SNAPSHOTS=1 and read what changed\n{now}"
    );
}

const VLLM: &str = include_str!("../../../apps/vllm-openai/manifest.yaml");
const LEAST: &str = "
app: { slug: least, display_name: Least, runtime_backend: docker_compose }
version: { version: 1.0.0, runtime_profile: { kind: docker_compose, renderer: vllm_openai, ports: [{ container: 8000 }] } }
";
const HELPED: &str = r#"
app: { slug: helped, display_name: Helped, runtime_backend: docker_compose }
version:
  version: 1.0.0
  artifacts: [{ name: runtime }, { name: proxy }]
  runtime_profile:
    kind: docker_compose
    renderer: vllm_openai
    env: [{ name: PRICE, value: "$5" }]
    read_only_root: true
    ports: [{ name: api, container: 8000 }, { name: metrics, container: 9000 }]
    launch_parameters: [{ name: model, argument: --model }, { name: api_key, argument: --api-key }]
    topology:
      services: [{ name: server, gpu: true }, { name: proxy, artifact: proxy }]
      endpoints:
        - { name: api, service: server, port: 8000 }
        - { name: metrics, service: proxy, port: 9000 }
      mounts: [{ service: server, path: /cache }, { service: server, path: /work }, { service: proxy, path: /spool }]
  config_schema:
    type: object
    properties:
      model: { type: string, default: a/b }
      api_key: { type: string, default: "pa$$word" }
"#;

#[test]
fn the_reference_app_renders_as_it_was_read() {
    let config = json!({ "model": "Qwen/Qwen2.5-7B-Instruct", "tensor_parallel_size": 2 });
    is_golden("vllm-openai.yaml", &rendered(&read(VLLM), &config, GRANT).unwrap());
}

#[test]
fn a_stack_without_a_topology_is_one_server() {
    let grant = Grant { gpu_count: 0, cpu_cores: 1, memory_gib: 1, host_port: None };
    is_golden("least.yaml", &rendered(&read(LEAST), &json!({}), grant).unwrap());
}

#[test]
fn helpers_get_their_share_and_the_server_the_rest() {
    is_golden("helped.yaml", &rendered(&read(HELPED), &json!({}), GRANT).unwrap());
}

/// Whatever is asked for, the file gives nobody more than the platform's own containers have.
#[test]
fn no_service_may_do_more_than_it_must() {
    for (manifest, config) in [(VLLM, json!({ "model": "a/b" })), (LEAST, json!({})), (HELPED, json!({}))] {
        let file = rendered(&read(manifest), &config, GRANT).unwrap();
        for (name, service) in file["services"].as_object().unwrap() {
            for word in
                ["privileged", "network_mode", "cap_add", "devices", "ipc", "pid", "build", "env_file"]
            {
                assert!(service.get(word).is_none(), "{name} has {word}");
            }
            assert!(service["image"].as_str().unwrap().contains("@sha256:"), "{name} runs by digest");
            let volumes = service["volumes"].as_array().into_iter().flatten();
            assert!(volumes.into_iter().all(|volume| volume["type"] == "volume"), "{name} mounts the host");
            let ports = service["ports"].as_array().into_iter().flatten();
            assert!(
                ports.into_iter().all(|port| port["host_ip"] == "127.0.0.1"),
                "{name} listens to the world"
            );
        }
    }
}

fn pointers(found: &[Unrenderable]) -> Vec<&str> {
    found.iter().map(|one| one.pointer.as_str()).collect()
}

#[test]
fn what_cannot_be_run_is_told_with_its_field() {
    for path in ["/models/weights", "/models/weights/", "/models/weights/q4.gguf"] {
        let weights = rendered(&read(VLLM), &json!({ "model": path }), GRANT).unwrap_err();
        assert_eq!(pointers(&weights), ["/config/model"], "{path}");
    }
    assert!(rendered(&read(VLLM), &json!({ "model": "/models/weights-2" }), GRANT).is_ok(), "another folder");
    let small = Grant { cpu_cores: 1, memory_gib: 1, ..GRANT };
    let small = rendered(&read(HELPED), &json!({}), small).unwrap_err();
    assert_eq!(pointers(&small), ["/resources/cpu_cores", "/resources/memory_gib"], "both at once");
}

#[test]
fn what_callers_see_holds_no_secret() {
    let file = rendered(&read(HELPED), &json!({}), GRANT).unwrap();
    let seen = shown(file);
    let server = &seen["services"]["server"];
    assert_eq!(server["command"][3], "[redacted]", "{server:#}");
    assert_eq!(server["command"][1], "a/b", "what is no secret stays");
    assert_eq!(server["environment"]["HF_TOKEN"], "[redacted]");
    assert_eq!(server["environment"]["PRICE"], "$$5", "what is no secret stays");
    assert!(!seen.to_string().contains("pa$$$$word"));
}

#[test]
fn ports_know_their_members() {
    let profile = profile(&read(HELPED));
    assert_eq!(member_of(&profile, Some(9000)), "proxy");
    assert_eq!(member_of(&profile, None), "server");
    let single = read(
        "
app: { slug: one, display_name: One, runtime_backend: launchable_oci }
version: { version: 1.0.0, runtime_profile: { kind: launchable_oci, ports: [{ container: 80 }] } }
",
    );
    assert_eq!(member_of(&self::profile(&single), Some(80)), "main");
}
