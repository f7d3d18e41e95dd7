//! A manifest as its author wrote it: JSON or YAML, with the place of every value in the text.
//!
//! Both forms become the same tree of JSON values, so that everything after this file knows only one. What makes a text
//! mean two things is refused here: a name that appears twice, anchors and aliases, tags, several documents in one.

mod json;
mod yaml;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::problem::{Pointer, Problem};

/// The longest text that is read; the API's body limit is the same.
pub const MAX_BYTES: usize = 1 << 20;
/// Deeper values are refused, so that no reader of ours can run out of stack.
pub(super) const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 50_000;
const MAX_NAME: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
}

/// A place in the text, counted from one, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Document {
    root: Node,
    /// What can be read in two ways; the tree has the first.
    problems: Vec<Problem>,
}

#[derive(Clone, Debug)]
struct Node {
    /// `None` where a program made the value and no text has it.
    at: Option<Position>,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Field>),
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    at: Option<Position>,
    value: Node,
}

/// Any YAML or JSON as a plain value, under the same rules: what can be read in two ways is refused.
pub fn value(text: &str, format: Format) -> Result<Value, Problem> {
    let document = Document::read(text, format)?;
    match document.problems.first() {
        Some(problem) => Err(problem.clone()),
        None => Ok(document.value()),
    }
}

impl Document {
    /// The text as a tree, or the one place where it stops being JSON or YAML.
    pub(super) fn read(text: &str, format: Format) -> Result<Document, Problem> {
        if text.len() > MAX_BYTES {
            return Err(Problem::at("", format!("is longer than {MAX_BYTES} bytes")));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match format {
            Format::Json => json::read(text),
            Format::Yaml => yaml::read(text),
        }
    }

    /// A value that no text holds, such as a part of another document.
    pub(super) fn from_value(value: &Value) -> Document {
        Document { root: Node::from_value(value), problems: Vec::new() }
    }

    pub(super) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(super) fn value(&self) -> Value {
        self.root.value()
    }

    /// Where a value stands, or the nearest one around it if there is none.
    pub(super) fn position(&self, pointer: &str) -> Option<Position> {
        self.find(pointer).1
    }

    /// Where the name of a field stands, or its value if it has none.
    pub(super) fn position_of_name(&self, pointer: &str) -> Option<Position> {
        let (name, value) = self.find(pointer);
        name.or(value)
    }

    fn find(&self, pointer: &str) -> (Option<Position>, Option<Position>) {
        let mut found = (None, self.root.at);
        let mut node = &self.root;
        for step in Pointer::steps(pointer) {
            let (name, next) = match &node.content {
                Content::Object(fields) => match fields.iter().find(|field| field.name == step) {
                    Some(field) => (field.at, &field.value),
                    None => return (None, found.1),
                },
                Content::List(items) => match step.parse::<usize>().ok().and_then(|place| items.get(place)) {
                    Some(item) => (None, item),
                    None => return (None, found.1),
                },
                _ => return (None, found.1),
            };
            (found, node) = ((name, next.at), next);
        }
        found
    }
}

impl Node {
    fn value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(word) => Value::Bool(*word),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::value).collect()),
            Content::Object(fields) => {
                let mut object = Map::new();
                for field in fields {
                    object.insert(field.name.clone(), field.value.value());
                }
                Value::Object(object)
            }
        }
    }

    fn from_value(value: &Value) -> Node {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(word) => Content::Bool(*word),
            Value::Number(number) => Content::Number(number.clone()),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => Content::List(items.iter().map(Node::from_value).collect()),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| Field {
                    name: name.clone(),
                    at: None,
                    value: Node::from_value(value),
                };
                Content::Object(fields.iter().map(field).collect())
            }
        };
        Node { at: None, content }
    }
}

/// What both readers keep while they build: how much there is, and what is doubtful.
#[derive(Default)]
struct Builder {
    nodes: usize,
    problems: Vec<Problem>,
}

impl Builder {
    fn node(&mut self, at: Position, content: Content) -> Node {
        Node { at: Some(at), content }
    }

    /// One more value, at this depth.
    fn count(&mut self, at: Position, depth: usize) -> Result<(), Problem> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(Problem::at("", format!("is nested more than {MAX_DEPTH} levels deep")).standing(at));
        }
        if self.nodes > MAX_NODES {
            return Err(Problem::at("", format!("has more than {MAX_NODES} values")).standing(at));
        }
        Ok(())
    }

    /// Pointers repeat the names above them, so names are short.
    fn check_name(&self, name: &str, at: Position) -> Result<(), Problem> {
        if name.len() <= MAX_NAME {
            return Ok(());
        }
        Err(Problem::at("", format!("has a name of more than {MAX_NAME} bytes")).standing(at))
    }

    fn doubt(&mut self, pointer: &Pointer, message: impl Into<String>, at: Position) {
        self.problems.push(Problem::at(pointer.as_str(), message).standing(at));
    }

    /// Keeps the first of two fields with one name.
    fn field(&mut self, fields: &mut Names, within: &Pointer, field: Field, at: Position) {
        if let Some(first) = fields.seen.get(&field.name) {
            let message = format!("appears twice; the first is on line {}", first.line);
            self.doubt(&within.field(&field.name), message, at);
            return;
        }
        fields.seen.insert(field.name.clone(), at);
        fields.fields.push(field);
    }
}

/// The fields of one object, and where each name stood first.
#[derive(Default)]
struct Names {
    seen: std::collections::HashMap<String, Position>,
    fields: Vec<Field>,
}

#[cfg(test)]
mod tests;
