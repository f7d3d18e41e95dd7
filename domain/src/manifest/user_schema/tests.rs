use serde_json::json;

use super::*;

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

#[test]
fn a_schema_that_is_small_in_writing_is_small_in_use() {
    let mut defs = serde_json::Map::new();
    for level in 0..24 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    defs.insert("d24".to_owned(), json!({ "type": "string" }));
    let bomb = json!({ "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": defs });
    assert_eq!(pointers(&bomb).len(), 1);
    let chain: serde_json::Map<String, Value> = (0..2000)
        .map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) })))
        .chain([("d2000".to_owned(), json!({}))])
        .collect();
    assert_eq!(pointers(&json!({ "$ref": "#/$defs/d0", "$defs": chain })).len(), 1);
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
