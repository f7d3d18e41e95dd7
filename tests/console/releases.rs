//! A further version of hello, as an app team brings it: registered, its image published, and rolled out or not.

use std::path::{Path, PathBuf};
use std::process::Command;

use clients::oci_layout::{FileEntry, Image, pack};
use node_protocol::program_for;
use serde_json::{Value, json};

use crate::support::process::{Dev, gpuaas};

/// Registered, with an image that was verified. Answers the artifact's id.
pub fn publish(dev: &Dev, folder: &Path, version: &str) -> String {
    let (url, project) = (dev.ready["api_url"].as_str().unwrap(), dev.ready["project_id"].as_str().unwrap());
    let token = dev.token("admin");
    register(
        folder,
        version,
        &format!("{url}/api/v1/admin/apps/manifests?owner_project_id={project}"),
        &token,
    );
    let image = some_other_image(&folder.join("next"));
    published(dev, folder, &["hello", version, "--image", image.to_str().unwrap()])
}

/// A release of the platform with a program for nodes like those of the story.
pub fn release(dev: &Dev, folder: &Path, version: &str) {
    let file = folder.join("program");
    std::fs::write(&file, "a program").unwrap();
    let blob = ["hello", "1.0.0", "--name", "program", "--blob", file.to_str().unwrap()];
    let name = program_for(Some(&format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)));
    let artifacts = json!([{ "name": name, "artifact_id": published(dev, folder, &blob) }]);
    post(dev, "/api/v1/admin/platform/releases", &json!({ "version": version, "artifacts": artifacts }));
}

/// By the command, as the platform's administrator. Answers the artifact's id.
fn published(dev: &Dev, folder: &Path, what: &[&str]) -> String {
    let mut publish = gpuaas(&[&["publish", "--output", "json"], what].concat());
    let of = |name: &str| dev.ready[name].as_str().unwrap();
    publish.env("GPUAAS_BASE_URL", of("api_url")).env("GPUAAS_TOKEN", dev.token("admin"));
    publish.env("GPUAAS_PROJECT", of("project_id")).env("HOME", folder);
    let said = publish.output().expect("the binary runs");
    let artifact: Value = serde_json::from_slice(&said.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&said.stderr)));
    artifact["id"].as_str().unwrap().to_owned()
}

/// Published, and open to every project that is entitled, as 1.0.0 is.
pub fn roll_out(dev: &Dev, folder: &Path, version: &str) {
    let artifact = publish(dev, folder, version);
    let project = dev.ready["project_id"].as_str().unwrap();
    let promote = format!("/api/v1/projects/{project}/app-artifacts/{artifact}/promote?wait=60s");
    settled(&post(dev, &promote, &json!({ "channel": "prod" })));
    for (verb, body) in [("stage", json!({})), ("canary", json!({ "percent": 100 })), ("publish", json!({}))]
    {
        let path = format!("/api/v1/admin/apps/catalog/hello/versions/{version}/{verb}?wait=60s");
        settled(&post(dev, &path, &body));
    }
}

fn register(folder: &Path, version: &str, address: &str, token: &str) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/hello/manifest.yaml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let file = folder.join("manifest.yaml");
    std::fs::write(&file, manifest.replace("version: 1.0.0", &format!("version: {version}"))).unwrap();
    let sent = Command::new("curl")
        .args(["-sf", "-H", &format!("Authorization: Bearer {token}")])
        .args(["-H", "Content-Type: application/yaml"])
        .args(["--data-binary", &format!("@{}", file.display()), address])
        .output()
        .expect("curl runs");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stdout));
}

/// Other bytes than those of the first version.
fn some_other_image(folder: &Path) -> PathBuf {
    let file = FileEntry { path: "bin/hello".to_owned(), executable: true, bytes: b"hello again".to_vec() };
    pack(&Image { files: vec![file], ..Image::default() }, folder).unwrap();
    folder.to_owned()
}

/// As the platform's administrator.
pub fn post(dev: &Dev, path: &str, body: &Value) -> Value {
    let (status, answer) = dev.post_as(path, &dev.token("admin"), body);
    assert!(status < 300, "{path}: {status} {answer}");
    answer
}

pub fn settled(answer: &Value) {
    assert_eq!(answer["workflow"]["status"], "succeeded", "{answer:#}");
}
