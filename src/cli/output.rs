//! What commands print. Data goes to stdout as a table for people, or as JSON, YAML or bare names for programs; talk and
//! errors go to stderr in the same form. A reader that closes the pipe early is not an error.

use std::io::{self, Write};

use api_types::{ErrorEnvelope, Invalid};
use clap::ValueEnum;
use domain::placement::Row;
use domain::{ErrorCode, yaml};
use serde::Serialize;
use serde_json::Value;

use super::matrix;
use crate::failure::{Failure, Operation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
    Yaml,
    /// The first column alone: ids for the next command
    Name,
    /// Rows of data for a spreadsheet; what is no table is printed as for people
    Csv,
}

impl Format {
    /// What these words ask for, as far as they can be understood: a command that is wrong elsewhere still says how its
    /// errors are to be printed.
    pub fn among(words: &[String]) -> Format {
        let mut asked = None;
        for (place, word) in words.iter().enumerate() {
            let joined = word.strip_prefix("--output=").or_else(|| {
                let short = word.strip_prefix("-o").filter(|_| !word.starts_with("--"))?;
                (!short.is_empty()).then(|| short.strip_prefix('=').unwrap_or(short))
            });
            let apart = if word == "-o" || word == "--output" {
                words.get(place + 1).map(String::as_str)
            } else {
                None
            };
            asked = joined.or(apart).and_then(|name| Format::from_str(name, true).ok()).or(asked);
        }
        asked.unwrap_or_default()
    }
}

/// Rows of data with a heading, and the same data for programs.
pub fn print<T: Serialize>(
    format: Format,
    heading: &[&str],
    rows: &[Vec<String>],
    data: &T,
) -> Result<(), Failure> {
    match format {
        Format::Table => text(&table(heading, rows)),
        Format::Csv => text(&csv(heading, rows)),
        Format::Name => text(
            &rows.iter().filter_map(|row| row.first()).map(|name| format!("{name}\n")).collect::<String>(),
        ),
        Format::Json | Format::Yaml => self::data(format, data),
    }
}

/// Data for programs alone, where a person has been shown something else.
pub fn data<T: Serialize>(format: Format, data: &T) -> Result<(), Failure> {
    let value = serde_json::to_value(data).map_err(Failure::server)?;
    text(&written(format, &value))
}

/// One of those that a stream brings: JSON on a line of its own, or a document of YAML.
pub fn one_of_many<T: Serialize>(format: Format, one: &T) -> Result<(), Failure> {
    let value = serde_json::to_value(one).map_err(Failure::server)?;
    text(&match format {
        Format::Yaml => format!("---\n{}", yaml::document(&value)),
        _ => format!("{value}\n"),
    })
}

fn written(format: Format, value: &Value) -> String {
    match format {
        Format::Yaml => yaml::document(value),
        _ => format!("{value:#}\n"),
    }
}

pub fn text(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::server(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// One line of talk.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A question; the answer comes on the same line.
pub fn ask(question: &str) {
    let _ = write!(io::stderr(), "{question}");
}

pub fn error(format: Format, failure: &Failure) {
    let value = serde_json::json!({ "error": failure });
    match format {
        Format::Json => say(&value.to_string()),
        Format::Yaml => say(yaml::document(&value).trim_end()),
        Format::Table | Format::Name | Format::Csv => {
            say(&format!("error: {}", failure.message.replace('\n', "\nerror: ")));
            if let Some(answer) = &failure.answer {
                evidence(answer);
            }
            if let Some(operation) = &failure.operation {
                way_on(operation);
            }
        }
    }
}

/// What else the API said of its refusal, and where to read more.
fn evidence(answer: &ErrorEnvelope) {
    let listed = answer.details.get("errors").cloned().unwrap_or_default();
    let problems: Vec<Invalid> = serde_json::from_value(listed).unwrap_or_default();
    if problems.len() > 1 {
        for problem in problems {
            say(&format!("  {} {}", problem.pointer, problem.message));
        }
    }
    if let Some(permission) = answer.details.get("permission").and_then(Value::as_str) {
        say(&format!("  needed: {permission}"));
    }
    if let Some(actions) = answer.details.get("allowed_actions").and_then(Value::as_array) {
        let actions: Vec<&str> = actions.iter().filter_map(Value::as_str).collect();
        say(&format!(
            "  allowed now: {}",
            if actions.is_empty() { "nothing".to_owned() } else { actions.join(", ") }
        ));
    }
    if answer.code == ErrorCode::EntitlementRequired {
        say("  next: a project admin runs `gpuaas entitle APP`");
    }
    let matrix = answer.details.get("matrix").cloned().unwrap_or_default();
    let matrix: Vec<Row> = serde_json::from_value(matrix).unwrap_or_default();
    for line in matrix::table(&matrix, None).lines() {
        say(&format!("  {line}"));
    }
    say(&format!(
        "  {} · gpuaas explain {} · correlation id {}",
        answer.code.status(),
        answer.code,
        answer.correlation_id
    ));
}

fn way_on(operation: &Operation) {
    say(&format!(
        "  {} {} · correlation id {}",
        operation.kind, operation.workflow_id, operation.correlation_id
    ));
    if !operation.next.is_empty() {
        say(&format!("  next: {}", operation.next.join(" · ")));
    }
}

/// RFC 4180, with plain line ends.
fn csv(heading: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |text: &str| {
        let quoted = text.contains([',', '"', '\n', '\r']);
        if quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let line = |cells: Vec<String>| format!("{}\n", cells.join(","));
    let first = line(heading.iter().map(|title| cell(title)).collect());
    rows.iter().fold(first, |text, row| text + &line(row.iter().map(|value| cell(value)).collect()))
}

pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|title| title.to_uppercase()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_without_spaces() {
        let rows = vec![
            vec!["a".into(), "long value".into(), "x".into()],
            vec!["bcd".into(), String::new(), "y".into()],
        ];
        let drawn = table(&["k", "value", "from"], &rows);
        assert_eq!(drawn, "K    VALUE       FROM\na    long value  x\nbcd              y\n");
    }

    #[test]
    fn the_format_is_found_however_it_is_said() {
        let among = |line: &str| Format::among(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for said in
            ["ps -o json", "ps --output json --nonsense", "--output=json ps", "ps -ojson", "ps -o=json"]
        {
            assert_eq!(among(said), Format::Json, "{said}");
        }
        assert_eq!(among("ps -o yaml -o"), Format::Yaml);
        for said in ["ps", "ps -o", "ps -o nonsense", "open --only"] {
            assert_eq!(among(said), Format::Table, "{said}");
        }
    }

    #[test]
    fn a_cell_that_could_be_read_as_two_is_quoted() {
        let rows = vec![vec!["1".into(), "a, \"b\"".into()]];
        assert_eq!(csv(&["n", "text"], &rows), "n,text\n1,\"a, \"\"b\"\"\"\n");
    }
}
