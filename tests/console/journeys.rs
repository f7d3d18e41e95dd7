//! The console in a real browser, on a real `gpuaas dev`: the journeys of `tests/browser`, each on its own data.
//!
//! `./dev` builds the console and installs what they need. `GPUAAS_SCREENSHOTS=docs/screenshots` renews the pictures.

use std::path::Path;
use std::process::Command;

use super::releases;
use crate::dev_apps::some_image;
use crate::support::cluster::Folder;
use crate::support::process::Dev;

/// On a platform whose app hello can be deployed, on a node that only pretends.
fn journey(name: &str, prepare: impl FnOnce(&Dev, &Path)) {
    let folder = Folder::new();
    let image = some_image(&folder.0.join("image"));
    let more = ["--docker-host", "unix:///nowhere/docker.sock", "--hello-image", image.to_str().unwrap()];
    let dev = Dev::start(&folder.0.join("data"), &more);
    prepare(&dev, &folder.0);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let said = Command::new("node")
        .arg(scripts.join(format!("{name}.mjs")))
        .env("GPUAAS_READY_FILE", folder.0.join("data.ready"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("node runs");
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(
        said.status.success(),
        "{name}: {out}\n{err}\n{}",
        std::fs::read_to_string(&dev.log).unwrap_or_default()
    );
    dev.stop();
}

fn as_it_is(_: &Dev, _: &Path) {}

#[test]
fn an_operator_finds_watches_pauses_cancels_and_begins_a_run_again() {
    journey("operator", as_it_is);
}

#[test]
fn a_viewer_sees_everything_and_can_do_nothing() {
    journey("viewer", as_it_is);
}

#[test]
fn every_page_can_be_used_by_everybody_by_day_and_night_on_a_desk_and_in_a_hand() {
    journey("pages", as_it_is);
}

#[test]
fn a_publisher_an_admin_and_a_project_admin_decide_and_the_pages_follow() {
    journey("admin", |dev, folder| releases::release(dev, folder, "1.2.0"));
}

#[test]
fn an_artifact_is_trusted_its_version_goes_out_and_comes_back_and_a_project_deploys_it() {
    journey("rollout", |dev, folder| {
        releases::publish(dev, folder, "1.1.0");
    });
}

#[test]
fn a_project_is_kept_its_people_machines_places_and_webhooks() {
    journey("project", as_it_is);
}
