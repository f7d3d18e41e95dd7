//! The console in a real browser, on a real `gpuaas dev`: the journeys of `tests/browser`, each on its own data.
//!
//! `./dev` builds the console and installs what they need. `GPUAAS_SCREENSHOTS=docs/screenshots` renews the pictures.

use std::path::Path;
use std::process::Command;

use crate::support::cluster::Folder;
use crate::support::process::Dev;

fn journey(name: &str) {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
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

#[test]
fn an_operator_finds_watches_pauses_cancels_and_begins_a_run_again() {
    journey("operator");
}

#[test]
fn a_viewer_sees_everything_and_can_do_nothing() {
    journey("viewer");
}

#[test]
fn every_page_can_be_used_by_everybody_by_day_and_night_on_a_desk_and_in_a_hand() {
    journey("pages");
}

#[test]
fn a_publisher_an_admin_and_a_project_admin_decide_and_the_pages_follow() {
    journey("admin");
}
