//! Schemas from outside: what people write is accepted, and none can leave itself, go in circles, or cost more than it is long.

use serde_json::{Map, json};

use super::*;

mod laws;

/// Keywords whose values are data where a schema stands, and names like any other where names do.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

fn pointers(schema: &Value) -> Vec<String> {
    let mut found: Vec<String> =
        problems(schema, &Pointer::default()).into_iter().map(|problem| problem.pointer).collect();
    found.dedup();
    found
}

#[test]
fn what_people_write_is_accepted() {
    for schema in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "$schema": DIALECT, "$id": "https://example.com/a", "type": "object", "properties": {} }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "enum": [1, 2], "default": { "$ref": "http://only-data" } } } }),
        json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] }, "dependentRequired": { "a": ["b"] } }),
        // A field may be called like a keyword.
        json!({ "properties": { "$ref": { "type": "string" }, "$id": { "type": "string" } } }),
    ] {
        assert_eq!(pointers(&schema), Vec::<String>::new(), "{schema}");
    }
}

#[test]
fn a_schema_can_neither_leave_itself_nor_go_in_circles() {
    for (schema, pointer) in [
        (json!({ "$ref": "https://example.com/a" }), "/$ref"),
        (json!({ "properties": { "a": { "$ref": "b.json" } } }), "/properties/a/$ref"),
        (json!({ "$ref": "file:///etc/passwd" }), "/$ref"),
        (json!({ "$ref": "#/$defs/none" }), "/$ref"),
        (json!({ "$dynamicRef": "#a" }), "/$dynamicRef"),
        (json!({ "$ref": "#" }), "/$ref"),
        (json!({ "allOf": [{ "$ref": "#" }] }), "/allOf/0/$ref"),
        (json!({ "properties": { "a": { "$id": "http://other" } } }), "/properties/a/$id"),
    ] {
        assert_eq!(pointers(&schema), [pointer], "{schema}");
    }
    let circle = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    assert_eq!(pointers(&circle).len(), 1);
    let through_itself =
        json!({ "properties": { "a": { "properties": { "b": { "$ref": "#/properties/a" } } } } });
    assert_eq!(pointers(&through_itself).len(), 1);
}

/// Definitions of which the first is doubled again and again.
fn doubling() -> Map<String, Value> {
    let mut defs = Map::new();
    for level in 0..24 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    defs.insert("d24".to_owned(), json!({ "type": "string" }));
    defs
}

#[test]
fn a_schema_that_is_small_in_writing_is_small_in_use() {
    let bomb = json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": doubling() });
    assert_eq!(pointers(&bomb).len(), 1);
    let chain: serde_json::Map<String, Value> = (0..2000)
        .map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) })))
        .chain([("d2000".to_owned(), json!({}))])
        .collect();
    assert_eq!(pointers(&json!({ "$ref": "#/$defs/d0", "$defs": chain })).len(), 1);
}

#[test]
fn a_field_that_is_called_like_a_keyword_hides_nothing() {
    for name in DATA {
        for around in ["properties", "patternProperties", "dependentSchemas"] {
            let place = format!("/{around}/{name}/$ref");
            let bomb = json!({ around: { name: { "$ref": "#/$defs/d0" } }, "$defs": doubling() });
            assert_eq!(pointers(&bomb), [place.as_str()], "{name}");
            let back = format!("#/$defs/{name}");
            let circle =
                json!({ around: { name: { "$ref": back } }, "$defs": { name: { "not": { "$ref": back } } } });
            assert_eq!(pointers(&circle), [place.as_str()], "{name}");
            let remote = json!({ around: { name: { "$ref": "https://example.com/a" } } });
            assert_eq!(pointers(&remote), [place.as_str()], "{name}");
        }
        let mut defs = doubling();
        defs.insert(name.to_owned(), json!({ "$ref": "#/$defs/d0" }));
        let bomb = json!({ "$ref": format!("#/$defs/{name}"), "$defs": defs });
        assert_eq!(pointers(&bomb), ["/$ref"], "{name}");
    }
}

#[test]
fn a_reference_leads_to_a_schema() {
    for (schema, pointer) in [
        (json!({ "$ref": "#/default", "default": { "pattern": "(?=a)" } }), "/$ref"),
        (json!({ "$ref": "#/examples/0", "examples": [{}] }), "/$ref"),
        (json!({ "allOf": [{ "$ref": "#/properties" }], "properties": {} }), "/allOf/0/$ref"),
    ] {
        assert_eq!(pointers(&schema), [pointer], "{schema}");
    }
}

#[test]
fn an_instance_hears_everything_that_is_wrong_with_it() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["model"],
        "properties": {
            "model": { "type": "string", "minLength": 1 },
            "size": { "enum": ["small", "large"] },
            "count": { "type": "integer", "maximum": 8 },
            "id": { "type": "string", "format": "uuid" },
        },
    });
    let instance = json!({ "sise": 1, "size": "larg", "count": 9.5, "id": "x", "a/b": 1 });
    let mut told: Vec<String> =
        instance_problems(&schema, &instance).iter().map(Problem::to_string).collect();
    told.sort();
    assert_eq!(
        told,
        [
            "/a~1b is not a known field",
            "/count must be a whole number",
            "/count must be at most 8",
            "/id must be a uuid",
            "/model is required",
            "/sise is not a known field; did you mean `size`?",
            "/size must be one of `small`, `large`; did you mean `large`?",
        ]
    );
    assert_eq!(instance_problems(&schema, &json!({ "model": "m", "size": "small" })), []);
}
