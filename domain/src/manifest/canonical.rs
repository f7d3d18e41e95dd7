//! The digest of a manifest's normal form. Two submissions with one digest say the same, however they were written.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::app::Manifest;

impl Manifest {
    /// `sha256:` and the hash of the normal form as JSON with sorted names and without spaces.
    pub fn digest(&self) -> String {
        digest_of(self)
    }
}

fn digest_of(content: &impl Serialize) -> String {
    let mut text = String::new();
    // Our types have string keys and finite numbers, so they always have a JSON form.
    let value = serde_json::to_value(content).unwrap_or(Value::Null);
    write_sorted(&value, &mut text);
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// Sorted here and not by the map, whose order depends on how `serde_json` was built.
fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            text.push('{');
            for (place, name) in names.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                write_sorted(&fields[name], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write_sorted(item, text);
            }
            text.push(']');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}
