//! Holding a JSON value to the schema its type publishes, collecting every problem instead of the first.
//!
//! It covers the part of JSON Schema that derived types use: types, enums, bounds, formats, the patterns of names,
//! nested objects and lists, alternatives. It refuses nothing that serde would accept, except what the schema bounds on purpose.

use std::collections::HashMap;

use api_types::Invalid;
use chrono::DateTime;
use domain::artifact::name;
use domain::{Digest, slug};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

type Rule = fn(&str) -> bool;

/// The patterns that types publish, each with the function that means the same.
const PATTERNS: [(&str, Rule); 5] = [
    (slug::PATTERN, slug::is_slug),
    (domain::digest::PATTERN, |text| text.parse::<Digest>().is_ok()),
    (name::VERSION_PATTERN, name::is_version),
    (name::NAME_PATTERN, name::is_name),
    (name::TAG_PATTERN, name::is_tag),
];

/// All that is wrong with `value` as a `T`.
pub(super) fn problems<T: ToSchema>(value: &Value) -> Vec<Invalid> {
    let mut referenced = Vec::new();
    T::schemas(&mut referenced);
    let to_value = |schema| serde_json::to_value(schema).unwrap_or(Value::Null);
    let named = referenced.into_iter().map(|(name, schema)| (name, to_value(schema))).collect();
    let mut checker = Checker { named, found: Vec::new() };
    checker.check(&to_value(T::schema()), value, "");
    checker.found
}

struct Checker {
    named: HashMap<String, Value>,
    found: Vec<Invalid>,
}

impl Checker {
    fn check(&mut self, schema: &Value, value: &Value, pointer: &str) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or(reference);
            let Some(target) = self.named.get(name).cloned() else { return };
            return self.check(&target, value, pointer);
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.check(part, value, pointer);
        }
        for alternatives in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema[alternatives].as_array() {
                self.check_any(alternatives, value, pointer);
            }
        }
        if !self.has_type(&schema["type"], value, pointer) {
            return;
        }
        self.check_enum(&schema["enum"], value, pointer);
        match value {
            Value::String(text) => self.check_text(schema, text, pointer),
            Value::Number(number) => self.check_number(schema, number.as_f64(), pointer),
            Value::Array(items) => self.check_items(schema, items, pointer),
            Value::Object(_) => self.check_fields(schema, value, pointer),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// One alternative must hold. When none does, the nearest miss is the most useful thing to say.
    fn check_any(&mut self, alternatives: &[Value], value: &Value, pointer: &str) {
        let before = std::mem::take(&mut self.found);
        let mut nearest: Option<Vec<Invalid>> = None;
        for alternative in alternatives.iter().filter(|schema| value.is_null() || schema["type"] != "null") {
            self.check(alternative, value, pointer);
            let missed = std::mem::take(&mut self.found);
            if nearest.as_ref().is_none_or(|so_far| missed.len() < so_far.len()) {
                nearest = Some(missed);
            }
        }
        self.found = before;
        self.found.extend(nearest.unwrap_or_default());
    }

    fn has_type(&mut self, types: &Value, value: &Value, pointer: &str) -> bool {
        let allowed: Vec<&str> = match types {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        let fits = allowed.iter().any(|name| is_of_type(name, value));
        if !fits {
            let wanted: Vec<&str> = allowed.into_iter().filter(|name| *name != "null").collect();
            self.report(pointer, format!("must be of type {}", wanted.join(" or ")));
        }
        fits
    }

    fn check_enum(&mut self, allowed: &Value, value: &Value, pointer: &str) {
        let Some(allowed) = allowed.as_array().filter(|allowed| !allowed.contains(value)) else { return };
        let words: Vec<String> = allowed
            .iter()
            .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
            .collect();
        self.report(pointer, format!("must be one of {}", words.join(", ")));
    }

    fn check_text(&mut self, schema: &Value, text: &str, pointer: &str) {
        self.check_bounds(schema, "minLength", "maxLength", text.chars().count(), "characters", pointer);
        let known = PATTERNS.iter().find(|(pattern, _)| schema["pattern"] == *pattern);
        if let Some((pattern, _)) = known.filter(|(_, fits)| !fits(text)) {
            self.report(pointer, format!("must match {pattern}"));
        }
        match schema["format"].as_str() {
            Some("uuid") if text.parse::<Uuid>().is_err() => self.report(pointer, "must be a UUID"),
            Some("date-time") if DateTime::parse_from_rfc3339(text).is_err() => {
                self.report(pointer, "must be an RFC 3339 time");
            }
            _ => {}
        }
    }

    fn check_number(&mut self, schema: &Value, number: Option<f64>, pointer: &str) {
        let Some(number) = number else { return };
        if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
            self.report(pointer, format!("must be at least {least}"));
        }
        if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
            self.report(pointer, format!("must be at most {most}"));
        }
    }

    fn check_items(&mut self, schema: &Value, items: &[Value], pointer: &str) {
        self.check_bounds(schema, "minItems", "maxItems", items.len(), "items", pointer);
        for (index, item) in items.iter().enumerate() {
            self.check(&schema["items"], item, &format!("{pointer}/{index}"));
        }
    }

    fn check_fields(&mut self, schema: &Value, value: &Value, pointer: &str) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(name).is_none() {
                self.report(&child(pointer, name), "is required");
            }
        }
        let known = &schema["properties"];
        for (name, field) in value.as_object().into_iter().flatten() {
            match known.get(name) {
                Some(schema) => self.check(schema, field, &child(pointer, name)),
                None if schema["additionalProperties"] == false => {
                    self.report(&child(pointer, name), "is not a known field");
                }
                None => self.check(&schema["additionalProperties"], field, &child(pointer, name)),
            }
        }
    }

    fn check_bounds(
        &mut self,
        schema: &Value,
        least: &str,
        most: &str,
        size: usize,
        unit: &str,
        pointer: &str,
    ) {
        if let Some(least) = schema[least].as_u64().filter(|least| (size as u64) < *least) {
            self.report(pointer, format!("must have at least {least} {unit}"));
        }
        if let Some(most) = schema[most].as_u64().filter(|most| (size as u64) > *most) {
            self.report(pointer, format!("must have at most {most} {unit}"));
        }
    }

    fn report(&mut self, pointer: &str, message: impl Into<String>) {
        self.found.push(Invalid { pointer: pointer.to_owned(), message: message.into() });
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// RFC 6901: `~` and `/` inside a name are escaped.
fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use api_types::{BulkRetry, Operate};
    use serde_json::json;

    fn pointers<T: ToSchema>(value: &Value) -> Vec<String> {
        problems::<T>(value).into_iter().map(|problem| problem.pointer).collect()
    }

    #[test]
    fn every_problem_is_found_and_pointed_at() {
        let body = json!({
            "ids": ["not-an-id", 7], "filter": { "cause": "bad_luck", "a/b": 1 }, "dry_run": "yes", "limit": 9999,
        });
        let mut found = pointers::<BulkRetry>(&body);
        found.sort();
        assert_eq!(found, ["/dry_run", "/filter/a~1b", "/filter/cause", "/ids/0", "/ids/1", "/limit"]);
    }

    #[test]
    fn what_the_schema_allows_passes() {
        for body in [
            json!({}),
            json!({ "ids": ["01968d5a-0000-7000-8000-000000000000"], "dry_run": true }),
            json!({ "filter": { "cause": "crash_loop", "kind": "a.b" }, "limit": 200, "ids": null }),
        ] {
            assert_eq!(problems::<BulkRetry>(&body), [], "{body}");
        }
    }

    #[test]
    fn bodies_of_the_wrong_shape_are_one_problem() {
        for body in [json!([]), json!("x"), json!(1), json!(null)] {
            assert_eq!(pointers::<Operate>(&body), [""], "{body}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(pointers::<Operate>(&json!({ "reason": "x".repeat(1001) })), ["/reason"]);
    }
}
