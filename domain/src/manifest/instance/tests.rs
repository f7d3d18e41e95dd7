//! What an instance gets out of its version and of what was asked for: defaults filled in, bounds kept, packages only where they are
//! installed.

use super::*;
use crate::manifest::{Format, read};

fn version(yaml: &str) -> Version {
    let head = "app: { slug: demo, display_name: Demo, runtime_backend: launchable_oci }\nversion:\n  version: 1.0.0\n";
    read(&format!("{head}{yaml}"), Format::Yaml).unwrap().manifest.version
}

fn plain() -> Version {
    version("  runtime_profile: { kind: launchable_oci }\n")
}

fn told(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_version_without_schemas_takes_an_allocation_and_nothing_else() {
    let version = plain();
    assert_eq!(told(&version.config_problems(&json!({}))), Vec::<String>::new());
    assert_eq!(told(&version.config_problems(&json!({ "a": 1 }))), ["/a is not a known field"]);
    let id = "01968d5a-0000-7000-8000-000000000001";
    assert_eq!(told(&version.placement_problems(&json!({ "allocation_id": id }))), Vec::<String>::new());
    assert_eq!(
        told(&version.placement_problems(&json!({ "allocation_id": "x" }))),
        ["/allocation_id must be a uuid"]
    );
    assert_eq!(told(&version.placement_problems(&json!({}))), ["/allocation_id is required"]);
}

#[test]
fn config_becomes_variables_and_arguments_with_defaults_filled_in() {
    let version = version(
        r#"
  config_schema:
    type: object
    properties:
      model: { type: string }
      size: { type: integer, default: 7 }
      fast: { type: boolean, default: true }
      slow: { type: boolean }
      tags: { type: array }
      nested: { type: object, properties: { a: { default: 1 } } }
  runtime_profile:
    kind: launchable_oci
    launch_parameters:
      - { name: model, argument: --model }
      - { name: size, env: SIZE }
      - { name: fast, argument: --fast }
      - { name: slow, argument: --slow }
      - { name: tags, argument: --tag }
      - { name: nested, env: NESTED }
"#,
    );
    let values =
        version.launch_values(&json!({ "model": "a b; rm", "slow": false, "tags": ["x", 2], "nested": {} }));
    assert_eq!(values.arguments, ["--model", "a b; rm", "--fast", "--tag", "x", "--tag", "2"]);
    let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(values.env, [env("SIZE", "7"), env("NESTED", r#"{"a":1}"#)]);
}

#[test]
fn packages_are_taken_only_where_the_version_installs_any_and_at_most_fifty() {
    assert_eq!(told(&plain().package_problems(&["numpy".to_owned()])).len(), 1);
    assert_eq!(told(&plain().package_problems(&[])).len(), 0);
    let version = version("  runtime_profile: { kind: launchable_oci, packages: [pandas] }\n");
    assert_eq!(told(&version.package_problems(&["numpy".to_owned(), "./x".to_owned()])).len(), 1);
    let many: Vec<String> = (0..50).map(|n| format!("p{n}")).collect();
    assert_eq!(
        told(&version.package_problems(&many)),
        ["must have at most 49 packages beside the version's own"]
    );
    assert_eq!(told(&version.package_problems(&many[1..])), Vec::<String>::new());
}

#[test]
fn a_launch_gets_what_is_usual_or_what_it_asks_for_within_bounds() {
    let version = version(
        "  runtime_profile: { kind: launchable_oci, resources: { gpu_count: { max: 2 }, memory_gib: { min: 4, default: 8 } } }\n",
    );
    let usual = Granted { gpu_count: 0, cpu_cores: 1, memory_gib: 8 };
    assert_eq!(version.grant(Wanted::default()), Ok(usual));
    let asked = Wanted { gpu_count: Some(2), cpu_cores: Some(64), memory_gib: Some(4) };
    assert_eq!(version.grant(asked), Ok(Granted { gpu_count: 2, cpu_cores: 64, memory_gib: 4 }));
    let refused =
        version.grant(Wanted { gpu_count: Some(3), cpu_cores: Some(0), memory_gib: Some(2) }).unwrap_err();
    assert_eq!(
        told(&refused),
        [
            "/gpu_count must be at least 0 and at most 2",
            "/cpu_cores must be at least 1",
            "/memory_gib must be at least 4",
        ]
    );
}
