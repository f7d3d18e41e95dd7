//! What a JSON Schema finds wrong, in our words: one problem for each thing to mend, at the place to mend it.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::problem::{Pointer, Problem};
use super::validate::MAX_PROBLEMS;

/// The problems that one finding of the validator stands for. `schema` is the one that was asked, about `value`.
pub(super) fn problems(error: &ValidationError<'_>, schema: &Value, value: &Value) -> Vec<Problem> {
    let place = error.instance_path().as_str();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = known_names(error, schema);
            listed(unexpected.iter(), place, &known)
        }
        // How `additionalProperties: false` complains where no field is known at all.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            let object = value.pointer(place).and_then(Value::as_object);
            let names = object.into_iter().flat_map(|object| object.keys());
            listed(names, place, &[])
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Problem::at(within(place, name), "is required")]
        }
        Kind::PropertyNames { error } => {
            vec![Problem::at(place, format!("has a name that {}", sentence(error, schema)))]
        }
        _ => vec![Problem::at(place, sentence(error, schema))],
    }
}

/// One problem for each name, but not more than anybody reads.
fn listed<'a>(names: impl Iterator<Item = &'a String>, place: &str, known: &[&str]) -> Vec<Problem> {
    let mut names = names.peekable();
    let mut found: Vec<Problem> =
        names.by_ref().take(MAX_PROBLEMS).map(|name| unknown_field(place, name, known)).collect();
    if names.peek().is_some() {
        found.push(Problem::at(place, format!("has {} more fields that are not known", names.count())));
    }
    found
}

fn unknown_field(place: &str, name: &str, known: &[&str]) -> Problem {
    let mut message = "is not a known field".to_owned();
    if let Some(meant) = nearest(name, known) {
        message.push_str(&format!("; did you mean `{meant}`?"));
    }
    Problem::of_name(within(place, name), message)
}

/// The known name that a misspelt one most likely stands for.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |word: &str| word.to_ascii_lowercase().replace(['-', ' '], "_");
    let wanted = plain(name);
    if wanted.len() > 64 {
        return None;
    }
    let distance = |word: &str| strsim::damerau_levenshtein(&wanted, &plain(word));
    let (best, distance) =
        known.iter().map(|word| (*word, distance(word))).min_by_key(|(_, distance)| *distance)?;
    let close = distance <= wanted.len().div_ceil(3);
    close.then_some(best)
}

fn known_names<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Vec<&'a str> {
    let properties = around(error, schema).and_then(|around| around["properties"].as_object());
    properties.into_iter().flat_map(|names| names.keys().map(String::as_str)).collect()
}

/// The subschema whose keyword complained.
fn around<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Option<&'a Value> {
    let (around, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
    schema.pointer(around)
}

fn within(place: &str, name: &str) -> String {
    format!("{place}{}", Pointer::default().field(name).as_str())
}

fn sentence(error: &ValidationError<'_>, schema: &Value) -> String {
    match error.kind() {
        Kind::Type { kind } => wrong_type(kind, error.instance()),
        Kind::Enum { options } => one_of(options, error.instance()),
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Pattern { pattern } => match around(error, schema).map(|around| &around["patternErrorMessage"])
        {
            Some(Value::String(said)) => said.clone(),
            _ => format!("must match {pattern}"),
        },
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "field")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "field")),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Format { format } => format!("must be a {format}"),
        Kind::FalseSchema => "is not allowed here".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => none_of(context, schema),
        Kind::OneOfMultipleValid { .. } => "matches more than one of the alternatives".to_owned(),
        _ => error.masked().to_string(),
    }
}

/// The alternative that came closest says what is missing: the one that got deepest, and of those one with words to
/// choose from.
fn none_of(context: &[Vec<ValidationError<'static>>], schema: &Value) -> String {
    let closeness = |branch: &&Vec<ValidationError<'static>>| {
        let depth = branch.iter().map(|error| error.instance_path().as_str().len()).max().unwrap_or(0);
        (depth, branch.iter().any(|error| matches!(error.kind(), Kind::Enum { .. })))
    };
    let closest = context.iter().max_by_key(closeness).and_then(|branch| branch.first());
    match closest {
        Some(error) if matches!(error.kind(), Kind::Enum { .. }) => sentence(error, schema),
        Some(error) => {
            format!("matches none of the alternatives; the closest says that it {}", sentence(error, schema))
        }
        None => "matches none of the alternatives".to_owned(),
    }
}

fn counted(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn one_of(options: &Value, found: &Value) -> String {
    let words: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = options.as_array().into_iter().flatten().map(shown).collect::<Vec<_>>().join(", ");
    match found.as_str().and_then(|found| nearest(found, &words)) {
        _ if words.len() == 1 => format!("must be {all}"),
        Some(meant) => format!("must be one of {all}; did you mean `{meant}`?"),
        None => format!("must be one of {all}"),
    }
}

fn shown(option: &Value) -> String {
    option.as_str().map_or_else(|| option.to_string(), |word| format!("`{word}`"))
}

fn wrong_type(kind: &TypeKind, found: &Value) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(name) => vec![name.to_string()],
        TypeKind::Multiple(names) => names.iter().map(|name| name.to_string()).collect(),
    };
    let wanted = names.iter().map(|name| in_words(name)).collect::<Vec<_>>().join(" or ");
    let text_wanted = names.iter().any(|name| name == "string");
    match found {
        Value::Null => format!("is empty: give it {wanted}, or leave it out"),
        Value::Number(number) if text_wanted => {
            format!("must be {wanted}, not the number {number}; put quotes around it")
        }
        Value::Bool(word) if text_wanted => {
            format!("must be {wanted}, not the value {word}; put quotes around it")
        }
        Value::Number(_) if names == ["integer"] => "must be a whole number".to_owned(),
        other => format!("must be {wanted}, not {}", kind_of(other)),
    }
}

fn in_words(json_type: &str) -> &'static str {
    match json_type {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        _ => "null",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
