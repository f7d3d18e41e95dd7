//! The registry of `gpuaas dev`: what was deleted gives its room back at the next start, and nothing else goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::console::releases::{publish, settled};
use crate::dev_apps::some_image;
use crate::support::cluster::Folder;
use crate::support::process::Dev;

/// The digests of what the registry keeps.
fn kept(data: &Path) -> BTreeSet<String> {
    let below = |folder: &Path| -> Vec<_> { fs::read_dir(folder).unwrap().map(|one| one.unwrap()).collect() };
    let blobs = data.join("registry/data/docker/registry/v2/blobs/sha256");
    let pairs = below(&blobs).into_iter().flat_map(|first| below(&first.path()));
    pairs
        .filter(|blob| blob.path().join("data").exists())
        .map(|blob| blob.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn what_was_deleted_from_the_registry_gives_its_room_back_at_the_next_start() {
    let folder = Folder::new();
    let (data, image) = (folder.0.join("data"), some_image(&folder.0.join("image")));
    let more = ["--docker-host", "unix:///nowhere/docker.sock", "--hello-image", image.to_str().unwrap()];
    let dev = Dev::start(&data, &more);
    let first = kept(&data);
    assert!(first.len() >= 3, "a manifest, a configuration and a layer: {first:?}");
    let artifact = publish(&dev, &folder.0, "1.1.0");
    let both = kept(&data);
    assert!(both.len() > first.len() && both.is_superset(&first), "{both:?}");

    let (project, admin) = (dev.ready["project_id"].as_str().unwrap(), dev.token("admin"));
    let none = json!({ "value": 0 });
    let policy = format!("/api/v1/admin/policies/project/{project}/artifact.retire_grace_seconds");
    let (status, answer) = dev.put_as(&policy, &admin, &none);
    assert_eq!(status, 200, "{answer}");
    let retire = format!("/api/v1/projects/{project}/app-artifacts/{artifact}/retire?wait=60s");
    let (_, retired) = dev.post_as(&retire, &admin, &json!({ "when": "now" }));
    settled(&retired);
    assert!(kept(&data).is_superset(&first), "nobody takes bytes from a registry that runs");
    dev.stop();

    let dev = Dev::start(&data, &more);
    assert_eq!(kept(&data), first, "what hello needs, and nothing of what is gone");
    dev.stop();
}
