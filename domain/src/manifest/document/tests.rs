//! Texts are read as YAML's core schema says, with the place of every value, and within bounds: what people write by mistake, and
//! what somebody writes to do harm.

use serde_json::json;

use super::*;

fn read(text: &str, format: Format) -> Document {
    Document::read(text, format).unwrap()
}

#[test]
fn every_value_and_every_name_has_its_place() {
    let yaml = read("app:\n  slug: demo # ä\n  list:\n    - one\n    - { a: ü, b: 2 }\n", Format::Yaml);
    let json = read("{\"app\": {\n  \"slug\": \"demo\",\n \"é\": [1,\n  2]}}", Format::Json);
    let at = |document: &Document, pointer: &str| document.position(pointer).map(|at| (at.line, at.column));
    assert_eq!(at(&yaml, "/app/slug"), Some((2, 9)));
    assert_eq!(at(&yaml, "/app/list/1/b"), Some((5, 18)));
    assert_eq!(at(&json, "/app/slug"), Some((2, 11)));
    assert_eq!(at(&json, "/app/é/1"), Some((4, 3)));
    let name = |document: &Document, pointer: &str| {
        document.position_of_name(pointer).map(|at| (at.line, at.column))
    };
    assert_eq!(name(&yaml, "/app/slug"), Some((2, 3)));
    assert_eq!(name(&json, "/app/slug"), Some((2, 3)));
    assert_eq!(at(&yaml, "/app/missing/deeper"), Some((2, 3)), "what is missing stands where it is missed");
}

#[test]
fn yaml_means_what_its_core_schema_says() {
    let text = "[~, null, '', \"\", true, False, yes, 0, -7, +3, 0x1F, 0o17, 010, 1.5, .5, -1e3, 1_000, 1.2.3, 2026-01-01, 99999999999999999999, a: b]";
    let value = read(text, Format::Yaml).value();
    let expected = json!([
        null, null, "", "", true, false, "yes", 0, -7, 3, 31, 15, 10, 1.5, 0.5, -1000.0, "1_000", "1.2.3",
        "2026-01-01", 1e20, { "a": "b" }
    ]);
    assert_eq!(value, expected);
}

#[test]
fn a_name_that_appears_twice_is_doubtful_and_its_first_value_counts() {
    for (text, format) in
        [("a: 1\nb: 2\na: 3\n", Format::Yaml), ("{\"a\":1,\n\"b\":2,\n\"\\u0061\":3}", Format::Json)]
    {
        let document = read(text, format);
        assert_eq!(document.value(), json!({ "a": 1, "b": 2 }));
        let told: Vec<String> = document.problems().iter().map(Problem::to_string).collect();
        assert_eq!(told, ["3:1: /a appears twice; the first is on line 1"]);
    }
}

#[test]
fn texts_that_would_cost_too_much_are_refused() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let wide = format!("[{}]", "1,".repeat(MAX_NODES));
    let name = format!("{{\"{}\": 1}}", "x".repeat(MAX_NAME + 1));
    let long = format!("\"{}\"", "x".repeat(MAX_BYTES));
    for text in [deep.as_str(), wide.as_str(), name.as_str(), long.as_str()] {
        for format in [Format::Json, Format::Yaml] {
            assert!(Document::read(text, format).is_err(), "{format:?} {}", &text[..10]);
        }
    }
    let allowed = format!("{}{}", "[".repeat(64), "]".repeat(64));
    assert!(Document::read(&allowed, Format::Json).is_ok());
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_text() {
    assert_eq!(read("\u{feff}{\"a\":1}", Format::Json).value(), json!({ "a": 1 }));
    assert_eq!(read("\u{feff}a: 1", Format::Yaml).value(), json!({ "a": 1 }));
}
