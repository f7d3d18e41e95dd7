//! JSON values as YAML. Every text is written in JSON's quotes, which YAML reads the same way: no text is taken for a
//! number, a date or a `no`.

use serde_json::Value;

pub fn document(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

/// At the beginning of a line, or after `- ` with the indentation that it leads to.
fn write(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (place, (name, field)) in fields.iter().enumerate() {
                indent(text, if place == 0 { 0 } else { depth });
                text.push_str(&key(name));
                text.push(':');
                below(text, field, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (place, item) in items.iter().enumerate() {
                indent(text, if place == 0 { 0 } else { depth });
                text.push_str("- ");
                write(text, item, depth + 1);
            }
        }
        scalar => {
            text.push_str(&scalar.to_string());
            text.push('\n');
        }
    }
}

/// After a name: what fits stays on its line, the rest goes below and deeper.
fn below(text: &mut String, value: &Value, depth: usize) {
    let nested = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        text.push('\n');
        indent(text, depth + 1);
        write(text, value, depth + 1);
    } else {
        text.push(' ');
        write(text, value, depth);
    }
}

fn indent(text: &mut String, depth: usize) {
    text.push_str(&"  ".repeat(depth));
}

/// Plain words need no quotes, unless YAML means something else by them.
fn key(name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if plain && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"].contains(&name) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nesting_is_shown_by_indentation_and_texts_are_quoted() {
        let value = json!({
            "items": [{ "id": "1", "tags": [], "at": { "no": null } }, { "id": "no", "tags": ["a", [1, 2]] }],
            "next_cursor": null,
        });
        let expected = "items:\n  - at:\n      \"no\": null\n    id: \"1\"\n    tags: []\n  - id: \"no\"\n    tags:\n      - \"a\"\n      - - 1\n        - 2\nnext_cursor: null\n";
        assert_eq!(document(&value), expected);
    }

    #[test]
    fn a_scalar_and_an_empty_object_are_documents_too() {
        assert_eq!(document(&json!("a: b\n")), "\"a: b\\n\"\n");
        assert_eq!(document(&json!({})), "{}\n");
    }
}
