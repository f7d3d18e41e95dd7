//! The reference apps are in the catalog of every `gpuaas dev`, once, however often it starts.

use std::path::{Path, PathBuf};

use clients::oci_layout::{FileEntry, Image, pack};
use serde_json::{Value, json};

use crate::support::cluster::Folder;
use crate::support::process::Dev;

fn read(dev: &Dev, path: &str) -> Value {
    let answer = dev.get_as(path, &dev.token("viewer"));
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn slugs(dev: &Dev) -> Vec<String> {
    let page = read(dev, "/api/v1/apps/catalog");
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|app| app["slug"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_reference_apps_are_registered_once() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let dev = Dev::start(&data, &[]);
    assert_eq!(slugs(&dev), ["hello", "jupyterlab", "vllm-openai", "slurm-reference"]);
    let before = read(&dev, "/api/v1/apps/catalog/hello/versions");
    dev.stop();
    let dev = Dev::start(&data, &[]);
    assert_eq!(slugs(&dev).len(), 4);
    assert_eq!(read(&dev, "/api/v1/apps/catalog/hello/versions"), before);
}

/// Whoever only simulates never looks into an image.
pub fn some_image(folder: &Path) -> PathBuf {
    let file = FileEntry { path: "bin/hello".to_owned(), executable: true, bytes: b"hello".to_vec() };
    pack(&Image { files: vec![file], ..Image::default() }, folder).unwrap();
    folder.to_owned()
}

#[test]
fn hello_is_published_and_entitled_once_whatever_a_later_start_brings() {
    let folder = Folder::new();
    let (data, image) = (folder.0.join("data"), folder.0.join("image"));
    let arguments =
        ["--docker-host", "unix:///nowhere/docker.sock", "--hello-image", image.to_str().unwrap()];
    let dev = Dev::start(&data, &arguments);
    let version = |dev: &Dev| read(dev, "/api/v1/apps/catalog/hello/versions/1.0.0");
    assert_eq!(version(&dev)["status"], "draft", "without an image there is nothing to publish");
    dev.stop();

    some_image(&image);
    let dev = Dev::start(&data, &arguments);
    assert_eq!((&version(&dev)["status"], &dev.ready["driver"]), (&json!("active"), &json!("simulated")));
    let project = dev.ready["project_id"].as_str().unwrap().to_owned();
    let entitled = format!("/api/v1/projects/{project}/apps/entitlements");
    assert_eq!(read(&dev, &entitled)["items"][0]["app_slug"], "hello");
    let runs = format!("/api/v1/projects/{project}/workflows?limit=200");
    // But for what the drift look starts: a node's last report may still show a container that is gone by now.
    let asked_for = |dev: &Dev| {
        let all = read(dev, &runs)["items"].as_array().unwrap().clone();
        let kinds = all.iter().map(|run| run["kind"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "instance.reconcile").collect::<Vec<_>>()
    };
    let before = asked_for(&dev);
    assert!(before.iter().any(|kind| kind.starts_with("version.")), "{before:?}");
    dev.stop();

    let dev = Dev::start(&data, &arguments);
    assert_eq!(asked_for(&dev), before, "nothing is done twice");
}
