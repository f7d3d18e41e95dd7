//! The house holds its shape: crates depend on each other only along the arrows of docs/ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Crate → what it may depend on. Nothing else, and nobody depends on the root package or the benchmarks.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("engine", &[]),
    ("store", &["domain"]),
    ("clients", &["domain"]),
    ("node-protocol", &["domain"]),
    ("agent", &["domain", "node-protocol"]),
    ("api-types", &["domain"]),
    ("activities", &["clients", "domain", "engine", "node-protocol", "store"]),
    ("workflows", &["activities", "domain", "engine", "node-protocol", "store"]),
    ("api", &["api-types", "clients", "domain", "engine", "node-protocol", "store", "workflows"]),
    ("bench", &["activities", "api", "clients", "domain", "engine", "store", "workflows"]),
    ("hello", &[]),
    (
        "gpuaas",
        &[
            "activities",
            "agent",
            "api",
            "api-types",
            "clients",
            "domain",
            "engine",
            "node-protocol",
            "store",
            "workflows",
        ],
    ),
];

fn workspace() -> BTreeMap<String, Vec<String>> {
    let said = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&said.stdout).expect("cargo's metadata");
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |v: &Value| v["name"].as_str().expect("a name").to_owned();
    packages
        .iter()
        .map(|p| (name(p), p["dependencies"].as_array().expect("deps").iter().map(name).collect()))
        .collect()
}

#[test]
fn crates_depend_only_along_the_arrows() {
    let crates = workspace();
    for (name, depends) in &crates {
        let allowed = ARROWS
            .iter()
            .find(|(n, _)| n == name)
            .unwrap_or_else(|| panic!("{name} has no place in the map"))
            .1;
        for dependency in depends.iter().filter(|d| crates.contains_key(*d)) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn only_the_engine_names_the_queue() {
    for (name, depends) in workspace() {
        let queue = depends.iter().any(|d| d.starts_with("apalis"));
        assert!(!queue || name == "engine", "{name} names apalis");
    }
}

#[test]
fn one_crypto_provider_is_compiled() {
    let lock =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).expect("the lock file");
    assert!(!lock.contains("name = \"aws-lc"), "aws-lc costs minutes of build; use ring");
}
