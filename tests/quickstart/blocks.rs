//! The commands of `docs/quickstart-curl.md`, and what it expects of them.

use serde_json::{Value, json};

const PAGE: &str = include_str!("../../docs/quickstart-curl.md");

/// Commands, and the answer that the page expects of them, in pieces.
pub struct Block {
    pub commands: String,
    pub expected: Vec<Value>,
}

/// The commands of the section that begins with this heading, in order.
pub fn blocks(step: &str) -> Vec<Block> {
    let section = |part: &&str| {
        let heading = part.lines().next().unwrap_or_default();
        heading == step
            || heading.starts_with(&format!("{step}:"))
            || heading.starts_with(&format!("{step} "))
    };
    let parts = PAGE.split("\n## ").flat_map(|part| part.strip_prefix("# ").or(Some(part)));
    let found = parts.into_iter().find(section).unwrap_or_else(|| panic!("the page has no {step}"));
    let block = |rest: &str| {
        let (commands, text) = rest.split_once("```").unwrap();
        Block { commands: commands.to_owned(), expected: expected(text) }
    };
    found.split("```bash\n").skip(1).map(block).collect()
}

/// Every piece of JSON in the sentence that says what to expect.
fn expected(text: &str) -> Vec<Value> {
    let Some((_, text)) = text.split_once("Expected") else { return Vec::new() };
    let text = text.split(". ").next().unwrap_or_default().replace('\n', " ");
    let pieces = text.split('`').skip(1).step_by(2).filter(|piece| piece.starts_with(['{', '"']));
    pieces
        .map(|piece| {
            let whole = if piece.starts_with('{') { piece.to_owned() } else { format!("{{{piece}}}") };
            let plain = whole.replace(", …}", "}").replace(", …]", "]").replace("{…}", "{}");
            serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{plain}: {error}"))
        })
        .collect()
}

/// Whether an answer has everything that is expected of it: `…` stands for anything, and so do ports.
pub fn has(answer: &Value, expected: &Value) -> bool {
    match (answer, expected) {
        (Value::Object(answer), Value::Object(expected)) => {
            expected.iter().all(|(name, field)| answer.get(name).is_some_and(|answer| has(answer, field)))
        }
        (Value::Array(answer), Value::Array(expected)) => {
            expected.iter().all(|wanted| answer.iter().any(|one| has(one, wanted)))
        }
        (Value::String(answer), Value::String(expected)) => {
            let (answer, expected) = (without_port(answer), without_port(expected));
            match expected.split_once('…') {
                Some((before, after)) => answer.starts_with(before) && answer.ends_with(after),
                None => answer == expected,
            }
        }
        _ => answer == expected,
    }
}

fn without_port(text: &str) -> String {
    match text.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}127.0.0.1:{rest}")
        }
        None => text.to_owned(),
    }
}

#[test]
fn an_answer_without_what_is_expected_is_found_out() {
    let page = "Expected: `{\"id\": \"01…\", \"items\": [{\"kind\": \"step\", …}], …}` and `\"at\": \"127.0.0.1:5000\"`. More";
    let expected = expected(page);
    let holds = |answer: Value| expected.iter().all(|piece| has(&answer, piece));
    assert!(holds(
        json!({ "id": "0197", "items": [{ "kind": "run" }, { "kind": "step" }], "at": "127.0.0.1:1" })
    ));
    assert!(!holds(json!({ "id": "0297", "items": [{ "kind": "step" }], "at": "127.0.0.1:1" })));
    assert!(!holds(json!({ "id": "0197", "items": [], "at": "127.0.0.1:1" })));
    assert!(!holds(json!({ "id": "0197", "items": [{ "kind": "step" }] })));
}
