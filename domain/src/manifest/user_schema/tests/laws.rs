//! Schemas built by construction, so that what must be said of them is known: those that fit are accepted with the values
//! that fit them, whatever their fields are called, and what must not be in them is found wherever it hides.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::{collection, sample};
use serde_json::{Map, Value, json};

use super::*;

const NAMES: [&str; 14] = [
    "a",
    "a/b~c",
    "const",
    "default",
    "enum",
    "examples",
    "$defs",
    "$id",
    "$ref",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "type",
];

fn name() -> impl Strategy<Value = &'static str> {
    sample::select(NAMES.to_vec())
}

/// A schema, and a value that fits it.
fn described() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        Just((json!({ "type": "string", "default": { "$ref": "http://only-data" } }), json!("words"))),
        (0..9).prop_map(|number| (json!({ "type": "integer", "maximum": 9 }), json!(number))),
        Just((json!({ "enum": ["small", "large"], "examples": [{ "$id": "data" }] }), json!("large"))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| collection::btree_map(name(), inner, 1..4).prop_map(object))
}

/// All fields are required, and there are no others.
fn object(fields: BTreeMap<&'static str, (Value, Value)>) -> (Value, Value) {
    let (mut properties, mut value, mut required) = (Map::new(), Map::new(), Vec::new());
    for (name, (schema, fitting)) in fields {
        properties.insert(name.to_owned(), schema);
        value.insert(name.to_owned(), fitting);
        required.push(name);
    }
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    (schema, Value::Object(value))
}

/// The schema as the value of a field below other fields, and where that is.
fn below(names: &[&str], schema: Value) -> (Value, Pointer) {
    let place = names.iter().fold(Pointer::default(), |place, name| place.field("properties").field(name));
    let whole = names.iter().rev().fold(schema, |schema, &name| json!({ "properties": { name: schema } }));
    (whole, place)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_fits_is_accepted_whatever_its_fields_are_called(name in name(), one in described()) {
        let (schema, value) = object(BTreeMap::from([(name, one)]));
        prop_assert_eq!(pointers(&schema), Vec::<String>::new());
        prop_assert_eq!(instance_problems(&schema, &value), []);
        let missing: Vec<String> =
            instance_problems(&schema, &json!({})).into_iter().map(|problem| problem.pointer).collect();
        prop_assert_eq!(missing, [Pointer::default().field(name).as_str().to_owned()]);
    }

    #[test]
    fn what_is_shared_is_as_what_is_written_out(name in name(), (inner, value) in described()) {
        let shared = format!("#{}", Pointer::default().field("$defs").field(name).as_str());
        let schema = json!({
            "properties": { name: { "$ref": shared }, "other": { "$ref": shared } }, "$defs": { name: inner },
        });
        prop_assert_eq!(pointers(&schema), Vec::<String>::new());
        prop_assert_eq!(instance_problems(&schema, &json!({ name: value, "other": value })), []);
    }

    #[test]
    fn what_must_not_be_is_found_wherever_it_hides(names in collection::vec(name(), 1..8)) {
        for (keyword, value) in [
            ("$ref", "#"), ("$ref", "https://example.com/a"), ("$ref", "#/$defs/none"), ("$dynamicRef", "#a"),
            ("$id", "https://example.com/a"), ("pattern", "(?=a)"),
        ] {
            let (schema, place) = below(&names, json!({ keyword: value }));
            prop_assert_eq!(pointers(&schema), [place.field(keyword).as_str().to_owned()]);
        }
    }

    #[test]
    fn no_value_breaks_the_check(one in described(), (_, other) in described()) {
        let (schema, fitting) = object(BTreeMap::from([("a", one)]));
        for value in [json!({ "a": other }), json!([fitting]), Value::Null, json!({ "a": fitting, "$ref": 1 })] {
            for problem in instance_problems(&schema, &value) {
                prop_assert!(problem.pointer.is_empty() || problem.pointer.starts_with('/'), "{}", problem);
            }
        }
    }
}
