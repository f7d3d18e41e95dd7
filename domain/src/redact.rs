//! What operators see of a step's input and output: everything but secrets.
//!
//! A value is hidden when the name of its field says that it is secret. Steps should not journal secrets at all;
//! this is the second lock on that door.

use serde_json::Value;

pub const REDACTED: &str = "[redacted]";

/// Parts of field names whose values are never shown. Names that only point at a secret (`…_id`, `…_ref`) are shown.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "private_key",
    "api_key",
    "authorization",
    "credential",
    "cookie",
];
const POINTERS: [&str; 6] = ["_id", "_ids", "_ref", "_name", "_expires_at", "_class"];

/// The same value with every secret replaced by [`REDACTED`], at any depth.
pub fn redacted(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let shown = if is_secret(&name) { hidden(value) } else { redacted(value) };
                    (name, shown)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(redacted).collect()),
        plain => plain,
    }
}

/// Whether a name says that what it stands for is secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_WORDS.iter().any(|word| name.contains(word)) && !POINTERS.iter().any(|end| name.ends_with(end))
}

/// An absent secret stays visibly absent.
fn hidden(value: Value) -> Value {
    if value.is_null() { Value::Null } else { Value::String(REDACTED.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_at_any_depth_and_whatever_their_shape() {
        let shown = redacted(json!({
            "user": "ada", "Password": "x", "nested": [{ "access_token": { "raw": "y" } }], "X-Api-Key": "z",
        }));
        assert_eq!(
            shown,
            json!({
                "user": "ada", "Password": REDACTED, "nested": [{ "access_token": REDACTED }], "X-Api-Key": REDACTED,
            })
        );
    }

    #[test]
    fn pointers_to_secrets_and_absent_secrets_stay_readable() {
        let plain = json!({ "access_credential_id": "0190", "token": null, "secret_ref": "vault:7" });
        assert_eq!(redacted(plain.clone()), plain);
    }
}
