//! What works without any platform: explaining codes, completions, and saying what is wrong with a command.

use super::{Shell, told};

#[test]
fn a_code_is_explained_without_asking_anybody() {
    let shell = Shell::new();
    insta::assert_snapshot!("explain_table", told(&shell.run(&["explain", "state_conflict"])));
    insta::assert_snapshot!("explain_json", told(&shell.run(&["explain", "state_conflict", "-o", "json"])));
    insta::assert_snapshot!("explain_unknown", told(&shell.run(&["explain", "workflow_missing"])));
    insta::assert_snapshot!("explain_unknown_json", told(&shell.run(&["explain", "no", "-o", "json"])));
}

#[test]
fn the_reason_of_an_instance_is_explained_too_and_a_word_that_is_both_as_both() {
    let shell = Shell::new();
    insta::assert_snapshot!("explain_reason", told(&shell.run(&["explain", "node_unreachable"])));
    insta::assert_snapshot!(
        "explain_reason_json",
        told(&shell.run(&["explain", "node_unreachable", "-o", "json"]))
    );
    insta::assert_snapshot!("explain_both", told(&shell.run(&["explain", "digest_mismatch"])));
    let both = shell.run(&["explain", "digest_mismatch", "-o", "json"]);
    let both: serde_json::Value = serde_json::from_str(&both.stdout).unwrap();
    assert_eq!(both["status"], 422);
    assert_eq!(both["reason"]["kind"], "blocked");
}

#[test]
fn names_alone_are_one_on_a_line() {
    let said = Shell::new().run(&["explain", "-o", "name"]);
    let names: Vec<&str> = said.stdout.lines().collect();
    let codes: Vec<&str> = domain::ErrorCode::all().map(domain::ErrorCode::as_str).collect();
    assert_eq!(names, codes);
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let said = Shell::new().run(&["completions", shell]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.contains("workflows") && said.stdout.contains("gpuaas"), "{shell}");
    }
    assert_eq!(Shell::new().run(&["completions", "tcsh"]).code, Some(1));
}

#[test]
fn whoever_is_not_signed_in_is_told_how_to() {
    let shell = Shell::new();
    insta::assert_snapshot!("not_signed_in", told(&shell.run(&["whoami"])));
    insta::assert_snapshot!("not_signed_in_json", told(&shell.run(&["whoami", "-o", "json"])));
    insta::assert_snapshot!("not_signed_in_yaml", told(&shell.run(&["whoami", "-o", "yaml"])));
}

#[test]
fn a_platform_that_is_not_there_is_the_servers_fault() {
    let shell = Shell::new();
    let mut command = shell.command(&["whoami", "--url", "http://127.0.0.1:1"]);
    let said = command.env("GPUAAS_TOKEN", "x").output().unwrap().into();
    insta::assert_snapshot!("unreachable", told(&said));
}
