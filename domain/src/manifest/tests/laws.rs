//! Laws that hold for any input, tried with many: nothing panics, reading is the inverse of writing, and the order of
//! versions is one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::manifest::number::compare;

/// Text that looks like a manifest in places, so that it gets past the first check now and then.
fn manifest_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("app:"),
        Just("version:"),
        Just("slug: demo-app"),
        Just("runtime_profile:"),
        Just("- "),
        Just("  "),
        Just("\n"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("'"),
        Just(": "),
        Just("&a "),
        Just("*a"),
        Just("!!str "),
        Just("|\n"),
        Just(">-\n"),
        Just("? "),
        Just("#"),
        Just("\t"),
        Just("---\n"),
        Just("\u{feff}"),
        Just("kind: docker_compose"),
        Just("1.10"),
        Just("config_schema: {$ref: '#'}"),
        Just("\\u0000"),
        Just("é"),
        Just("%YAML 1.2\n"),
        Just("<<: "),
        Just(","),
        Just("null"),
        Just(".inf"),
        Just("0x"),
        Just("-"),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["launchable_oci", "docker_compose", "slurm", "#/$defs/a", "1.0", "http"])
            .prop_map(Value::from),
    ];
    let name = prop_oneof![prop::sample::select(field_names()), "[a-z$~/]{0,6}",];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..8).prop_map(|map| json!(map)),
        ]
    })
}

/// Every name the schema knows, so that random objects reach every check.
fn field_names() -> Vec<String> {
    let mut names: Vec<String> =
        vec!["$ref".into(), "$defs".into(), "properties".into(), "allOf".into(), "type".into()];
    for definition in schema()["$defs"].as_object().unwrap().values() {
        names
            .extend(definition["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    }
    names.sort();
    names.dedup();
    names
}

/// The most expensive documents the readers let through are still answered.
#[test]
fn many_problems_are_counted_and_not_all_told() {
    let fields: Vec<String> = (0..30_000).map(|n| format!("\"displayname{n}\":\"\\u0000\"")).collect();
    let text = format!("{{\"app\":{{{}}}}}", fields.join(","));
    let rejected = read(&text, Format::Json).unwrap_err();
    assert_eq!(rejected.problems.len(), 501);
    assert!(rejected.problems.iter().any(|problem| problem.message.ends_with("more problems")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in prop_oneof![manifest_like(), "\\PC{0,200}", "[\\x00-\\x7f]{0,200}"]) {
        for format in [Format::Json, Format::Yaml] {
            if let Err(rejected) = read(&text, format) {
                prop_assert!(!rejected.problems.is_empty());
            }
        }
    }

    #[test]
    fn no_value_panics(value in any_json()) {
        if let Err(rejected) = take(&value) {
            prop_assert!(!rejected.problems.is_empty());
        }
    }

    /// A value written as text is read as itself, by both readers, and both say the same of it.
    #[test]
    fn both_readers_read_the_same(value in any_json()) {
        let text = value.to_string();
        let json = document::Document::read(&text, Format::Json).unwrap();
        prop_assert_eq!(json.value(), value.clone());
        prop_assert!(json.problems().is_empty());
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(document::Document::read(&pretty, Format::Json).unwrap().value(), value);
    }

    /// One good manifest with one part replaced by anything: refused or normal, and then normal for good.
    #[test]
    fn a_damaged_manifest_is_refused_or_normal(place in 0..60usize, value in any_json()) {
        let files = corpus("good");
        let file = &files[place % files.len()];
        let mut manifest = serde_json::to_value(read_file(file).unwrap().manifest).unwrap();
        let half = if place % 2 == 0 { "app" } else { "version" };
        let names: Vec<String> = manifest[half].as_object().unwrap().keys().cloned().collect();
        manifest[half][&names[place % names.len()]] = value;
        if let Ok(accepted) = take(&manifest) {
            let again = take(&serde_json::to_value(&accepted.manifest).unwrap());
            prop_assert_eq!(again.map(|again| again.manifest), Ok(accepted.manifest));
        }
    }

    #[test]
    fn versions_have_one_order(a in "[0-9a-c.+_-]{1,8}", b in "[0-9a-c.+_-]{1,8}", c in "[0-9a-c.+_-]{1,8}") {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le());
        }
    }

    #[test]
    fn no_package_specifier_panics(text in "\\PC{0,40}") {
        let _ = package_problem(&text);
    }
}
