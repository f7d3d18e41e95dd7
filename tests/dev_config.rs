//! The configuration as an operator meets it: where values come from, and what a mistake says.

use std::fs;

use serde_json::Value;

use crate::support::cluster::Folder;
use crate::support::process::{Said, gpuaas, run};

#[test]
fn config_show_says_where_each_value_came_from() {
    let folder = Folder::new();
    let file = folder.0.join("platform.toml");
    fs::write(&file, "[engine]\nslots = 7\n").unwrap();
    let mut command = gpuaas(&["config", "show", "-o", "json", "--set", "log.filter=debug", "--config"]);
    let output =
        command.arg(&file).env("GPUAAS_DATABASE_URL", "postgres://app:secret@db/gpuaas").output().unwrap();
    let shown: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of = |key: &str| {
        let one = shown.iter().find(|one| one["key"] == key).unwrap();
        format!("{} from {}", one["value"].as_str().unwrap(), one["origin"].as_str().unwrap())
    };
    assert_eq!(of("engine.slots"), format!("7 from {}:2", file.display()));
    assert_eq!(of("database.url"), "postgres://app:***@db/gpuaas from environment GPUAAS_DATABASE_URL");
    assert_eq!(of("log.filter"), "debug from flag --set");
    assert_eq!(of("server.listen"), "127.0.0.1:8080 from default");
}

#[test]
fn the_printed_default_file_is_a_valid_configuration_file() {
    let folder = Folder::new();
    let file = folder.0.join("gpuaas.toml");
    fs::write(&file, run(&["config", "default"]).stdout).unwrap();
    let said = run(&["config", "show", "--config", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}

#[test]
fn a_wrong_key_ends_every_command_with_its_place_and_exit_code_1() {
    let folder = Folder::new();
    let file = folder.0.join("gpuaas.toml");
    fs::write(&file, "[database]\nurll = \"x\"\n").unwrap();
    for command in ["serve", "migrate", "doctor"] {
        let said = run(&[command, "--config", file.to_str().unwrap()]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.stderr.contains(&format!("{}:2: no setting `database.urll`", file.display())),
            "{said:?}"
        );
        assert!(said.stdout.is_empty(), "errors are talk, not data: {said:?}");
    }
}

#[test]
fn errors_are_json_when_json_is_asked_for() {
    let said = run(&["serve", "-o", "json"]);
    let error: Value = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(error["error"]["code"], "usage");
    assert!(error["error"]["message"].as_str().unwrap().contains("GPUAAS_DATABASE_URL"));
}

#[test]
fn an_address_that_cannot_be_read_ends_the_start_without_its_password() {
    for url in ["postgres://app:s3/cret@db/gpuaas", "postgres://db/gpuaas?password=s3cret&sslmode=cret"] {
        let output = gpuaas(&["serve"]).env("GPUAAS_DATABASE_URL", url).output().unwrap();
        let said = Said::from(output);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.contains("environment GPUAAS_DATABASE_URL: `database.url`"), "{said:?}");
        assert!(!said.stderr.contains("s3"), "{said:?}");
    }
}

#[test]
fn an_empty_name_of_a_configuration_file_names_none() {
    let output = gpuaas(&["config", "show"]).env("GPUAAS_CONFIG", "").output().unwrap();
    let said = Said::from(output);
    assert_eq!(said.code, Some(0), "{said:?}");
}
