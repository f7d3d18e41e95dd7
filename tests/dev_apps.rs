//! The reference apps are in the catalog of every `gpuaas dev`, once, however often it starts.

use serde_json::Value;

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
