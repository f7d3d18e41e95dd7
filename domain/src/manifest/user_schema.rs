//! Schemas that app teams write: `config_schema` and `placement_schema`. They are checked once, when a manifest is
//! read, so that instances can be held to them later without surprise.
//!
//! A schema is data from outside and runs on our side for every launch. So it is small, refers only to itself and never
//! in circles, expands to a bounded number of subschemas, and its patterns run in linear time.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

use super::explain;
use super::problem::{Pointer, Problem};
use super::schema::DIALECT;

const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 32;
/// Subschemas, counting every use of a shared one, and their levels with every reference followed.
const MAX_EXPANDED: usize = 10_000;
const MAX_EXPANDED_DEPTH: usize = 64;
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What stands at a place. Only in a schema is a name a keyword: below names it is somebody's own, be it `default` or
/// `$ref`, and data means nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Schema,
    Names,
    Data,
}

impl Holds {
    fn below(self, name: &str) -> Holds {
        match (self, name) {
            (Holds::Data, _) | (Holds::Schema, "const" | "default" | "enum" | "examples") => Holds::Data,
            (
                Holds::Schema,
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
                | "properties",
            ) => Holds::Names,
            _ => Holds::Schema,
        }
    }

    /// What a JSON Pointer from the top of a schema leads to.
    fn at(pointer: &str) -> Holds {
        Pointer::steps(pointer).fold(Holds::Schema, |holds, name| holds.below(&name))
    }
}

/// All that is wrong with a schema that stands at this place of a manifest.
pub(super) fn problems(schema: &Value, place: &Pointer) -> Vec<Problem> {
    if schema.to_string().len() > MAX_BYTES {
        return vec![Problem::at(place, format!("must be at most {} KiB", MAX_BYTES / 1024))];
    }
    if depth(schema) > MAX_DEPTH {
        return vec![Problem::at(place, format!("must not be nested more than {MAX_DEPTH} levels deep"))];
    }
    let mut found = dialect(schema, place);
    found.extend(by_meta_schema(schema, place));
    let mut walk = Walk { root: schema, found: Vec::new(), expanded: 0, path: Vec::new() };
    walk.keywords(schema, Holds::Schema, place);
    if walk.found.is_empty() {
        walk.expand(schema, Holds::Schema, place, 1);
    }
    found.extend(walk.found);
    if found.is_empty()
        && let Err(error) = compiled(schema)
    {
        let at = format!("{}{}", place.as_str(), error.instance_path().as_str());
        found.push(Problem::at(at, format!("is not a usable schema: {}", error.masked())));
    }
    found
}

/// All that is wrong with a value by a schema that was accepted before.
pub(super) fn instance_problems(schema: &Value, instance: &Value) -> Vec<Problem> {
    match compiled(schema) {
        Ok(validator) => validator
            .iter_errors(instance)
            .flat_map(|error| explain::problems(&error, schema, instance))
            .collect(),
        // Only a schema that was never checked comes here.
        Err(error) => vec![Problem::at("", format!("cannot be checked: {}", error.masked()))],
    }
}

fn compiled(schema: &Value) -> Result<Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .should_validate_formats(true)
        .offline()
        .build(schema)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn dialect(schema: &Value, place: &Pointer) -> Vec<Problem> {
    let mut found = Vec::new();
    let said = schema["$schema"].as_str();
    if said.is_some_and(|said| said.trim_end_matches('#') != DIALECT) {
        found.push(Problem::at(place.field("$schema"), format!("must be {DIALECT}")));
    }
    if schema["type"].as_str().is_some_and(|name| name != "object") {
        found.push(Problem::at(place.field("type"), "must be `object`: what it describes has named fields"));
    }
    found
}

fn by_meta_schema(schema: &Value, place: &Pointer) -> Vec<Problem> {
    let meta = jsonschema::draft202012::meta::validator();
    let findings = meta.iter_errors(schema);
    findings
        .flat_map(|error| explain::problems(&error, &Value::Null, schema))
        .map(|problem| Problem::at(format!("{}{}", place.as_str(), problem.pointer), problem.message))
        .collect()
}

struct Walk<'a> {
    root: &'a Value,
    found: Vec<Problem>,
    expanded: usize,
    /// The references that are being followed.
    path: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    /// Keywords that reach outside of the schema, or change what a reference means.
    fn keywords(&mut self, value: &'a Value, holds: Holds, place: &Pointer) {
        if holds == Holds::Data {
            return;
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let here = place.field(name);
            if holds == Holds::Schema {
                self.keyword(name, value, &here);
            }
            self.keywords(value, holds.below(name), &here);
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.keywords(item, holds, &place.item(index));
        }
    }

    fn keyword(&mut self, name: &str, value: &'a Value, here: &Pointer) {
        match (name, value) {
            ("$ref", Value::String(target)) => self.reference(target, here),
            ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                self.found.push(Problem::at(here, "must not be dynamic; use `$ref`"));
            }
            ("$id", Value::String(_)) if !std::ptr::eq(value, &self.root["$id"]) => {
                self.found.push(Problem::of_name(here, "is only allowed at the top of a schema"));
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern, here),
            ("patternProperties", Value::Object(patterns)) => {
                for pattern in patterns.keys() {
                    self.pattern(pattern, &here.field(pattern));
                }
            }
            _ => {}
        }
    }

    fn reference(&mut self, target: &str, place: &Pointer) {
        let Some(pointer) = local(target) else {
            let message = "must refer to this schema itself, as in `#/$defs/name`; nothing else is fetched";
            return self.found.push(Problem::at(place, message));
        };
        if self.root.pointer(pointer).is_none() {
            self.found.push(Problem::at(place, "refers to nothing"));
        } else if Holds::at(pointer) != Holds::Schema {
            self.found.push(Problem::at(place, "must refer to a schema; this is only a part of one"));
        }
    }

    fn pattern(&mut self, pattern: &str, place: &Pointer) {
        if compiled(&json!({ "pattern": pattern })).is_err() {
            let message =
                "is not a regular expression, or one with lookaround or backreferences, which may not end";
            self.found.push(Problem::at(place, message));
        }
    }

    /// Follows every reference, so that what is small in writing is small in use. Problems point at the first reference
    /// that led there.
    fn expand(&mut self, value: &'a Value, holds: Holds, place: &Pointer, depth: usize) {
        // One such problem is enough, and every further step would cost more.
        if !self.found.is_empty() {
            return;
        }
        self.expanded += 1;
        if self.expanded > MAX_EXPANDED {
            let message = format!("must not expand to more than {MAX_EXPANDED} subschemas");
            return self.found.push(Problem::at(place, message));
        }
        if depth > MAX_EXPANDED_DEPTH {
            let message = format!("must not lead more than {MAX_EXPANDED_DEPTH} levels deep");
            return self.found.push(Problem::at(place, message));
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let below = holds.below(name);
            let here = self.below(place, || place.field(name));
            match (holds, name.as_str(), value) {
                // What is defined counts where it is used.
                (Holds::Schema, "$defs", _) => {}
                (Holds::Schema, "$ref", Value::String(target)) => self.follow(target, &here, depth),
                (_, _, Value::Object(_) | Value::Array(_)) if below != Holds::Data => {
                    self.expand(value, below, &here, depth + 1);
                }
                _ => {}
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if item.is_object() {
                let here = self.below(place, || place.item(index));
                self.expand(item, holds, &here, depth + 1);
            }
        }
    }

    fn below(&self, place: &Pointer, inside: impl FnOnce() -> Pointer) -> Pointer {
        if self.path.is_empty() { inside() } else { place.clone() }
    }

    fn follow(&mut self, target: &'a str, place: &Pointer, depth: usize) {
        if self.path.contains(&target) || target == "#" {
            return self.found.push(Problem::at(place, "leads back to itself; schemas of forms must end"));
        }
        let Some(schema) = local(target).and_then(|pointer| self.root.pointer(pointer)) else { return };
        self.path.push(target);
        self.expand(schema, Holds::Schema, place, depth + 1);
        self.path.pop();
    }
}

/// The JSON Pointer of a reference into the schema itself. Percent signs would need decoding, which nobody writes.
fn local(target: &str) -> Option<&str> {
    let pointer = target.strip_prefix('#')?;
    let plain = pointer.is_empty() || pointer.starts_with('/');
    (plain && !pointer.contains('%')).then_some(pointer)
}

#[cfg(test)]
mod tests;
