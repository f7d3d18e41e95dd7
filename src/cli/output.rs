//! What commands print. Data goes to stdout as a table for people or JSON for programs; talk and errors go to
//! stderr. A reader that closes the pipe early is not an error.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
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
        Format::Json => {
            let json = serde_json::to_string_pretty(data).map_err(Failure::server)?;
            text(&format!("{json}\n"))
        }
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

pub fn error(format: Format, failure: &Failure) {
    let json = serde_json::to_string(&serde_json::json!({ "error": failure }));
    match (format, json) {
        (Format::Json, Ok(json)) => say(&json),
        _ => say(&format!("error: {}", failure.message.replace('\n', "\nerror: "))),
    }
}

fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
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
}
