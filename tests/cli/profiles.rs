//! `gpuaas config`: profiles are made, chosen, changed and removed.

use super::{Shell, told};

#[test]
fn profiles_are_made_chosen_and_removed() {
    let shell = Shell::new();
    assert_eq!(
        shell.run(&["config", "set", "--url", "https://gpuaas.example/", "--project", "p1"]).code,
        Some(0)
    );
    let staging =
        ["config", "set", "--profile", "staging", "--url", "https://staging.example", "--client-id", "cli"];
    assert_eq!(shell.run(&staging).code, Some(0));
    insta::assert_snapshot!("profiles_table", told(&shell.run(&["config", "profiles"])));
    assert_eq!(shell.run(&["config", "use", "staging"]).code, Some(0));
    insta::assert_snapshot!("profiles_json", told(&shell.run(&["config", "profiles", "-o", "json"])));
    insta::assert_snapshot!("profiles_missing", told(&shell.run(&["config", "use", "prod"])));
    assert_eq!(shell.run(&["config", "remove", "staging"]).code, Some(0));
    let left = shell.run(&["config", "profiles", "-o", "name"]);
    assert_eq!(left.stdout, "default\n");
}

#[test]
fn a_name_cannot_lead_out_of_the_folder() {
    let said = Shell::new().run(&["config", "set", "--profile", "../../x", "--url", "http://127.0.0.1:1"]);
    assert_eq!(said.code, Some(1), "{said:?}");
}
