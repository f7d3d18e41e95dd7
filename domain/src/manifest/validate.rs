//! The door: a text or a value comes in, and either a manifest in its normal form goes on, or everything that is wrong
//! with it goes back. The command line, the API and registration all come through here.

use std::collections::HashSet;
use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;

use super::app::Manifest;
use super::author::{Author, Form};
use super::check;
use super::document::{Document, Format};
use super::explain;
use super::normal::normal;
use super::problem::Problem;
use super::schema::schema_of;

/// More problems than anybody reads; beyond them only their number is told.
pub(super) const MAX_PROBLEMS: usize = 500;

/// A manifest that holds, and what its author may still want to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    pub manifest: Manifest,
    pub warnings: Vec<Problem>,
}

/// Everything that is wrong, in the order of the text, and the warnings besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    pub problems: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

/// Reads a manifest from its text; problems have their line and column.
pub fn read(text: &str, format: Format) -> Result<Accepted, Rejected> {
    match Document::read(text, format) {
        Ok(document) => validate(&document),
        Err(problem) => Err(Rejected { problems: vec![problem], warnings: Vec::new() }),
    }
}

/// Takes a manifest that is JSON already, such as a part of a request.
pub fn take(value: &Value) -> Result<Accepted, Rejected> {
    validate(&Document::from_value(value))
}

fn validate(document: &Document) -> Result<Accepted, Rejected> {
    let value = document.value();
    let form = Form::of(&value);
    let found = check::everything(&Author::of(&value));
    let mut problems = document.problems().to_vec();
    problems.extend(found.problems);
    problems.extend(shape(&value, form, &problems));
    let warnings = placed(found.warnings, document);
    if problems.is_empty() {
        match serde_json::from_value(normal(value, form)) {
            Ok(manifest) => return Ok(Accepted { manifest, warnings }),
            // The schema and the types say the same; should they ever differ, the types decide.
            Err(error) => problems.push(Problem::at("", error.to_string())),
        }
    }
    Err(Rejected { problems: placed(problems, document), warnings })
}

/// What the schema finds. A place that was complained about with a better reason needs no second complaint.
fn shape(value: &Value, form: Form, said: &[Problem]) -> Vec<Problem> {
    let (validator, schema) = &**match form {
        Form::Package => &PACKAGE,
        Form::Flat => &FLAT,
    };
    let Some(validator) = validator else {
        return vec![Problem::at("", "cannot be checked: the schema of manifests does not compile")];
    };
    let said: HashSet<&str> = said.iter().map(|problem| problem.pointer.as_str()).collect();
    let findings = validator.iter_errors(value).flat_map(|error| explain::problems(&error, schema, value));
    findings.filter(|problem| !said.contains(problem.pointer.as_str())).collect()
}

type Shape = LazyLock<(Option<Validator>, Value)>;
static PACKAGE: Shape = LazyLock::new(|| compiled(Form::Package));
static FLAT: Shape = LazyLock::new(|| compiled(Form::Flat));

fn compiled(form: Form) -> (Option<Validator>, Value) {
    let schema = schema_of(form.schema_name());
    (jsonschema::options().with_draft(Draft::Draft202012).offline().build(&schema).ok(), schema)
}

/// With their lines and columns, in the order of the text, and not more than anybody reads.
fn placed(mut problems: Vec<Problem>, document: &Document) -> Vec<Problem> {
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    let mut problems: Vec<Problem> = problems.into_iter().map(|problem| problem.placed(document)).collect();
    problems.sort_by(|a, b| (a.line, a.column, &a.pointer).cmp(&(b.line, b.column, &b.pointer)));
    problems.dedup();
    if more > 0 {
        problems.push(Problem::at("", format!("has {more} more problems")));
    }
    problems
}
