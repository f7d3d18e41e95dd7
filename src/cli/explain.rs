//! `gpuaas explain CODE`: the page of an error code, from the binary itself: it works where nothing else does.

use clap::Args;
use domain::ErrorCode;
use serde::Serialize;

use super::output::{self, Format};
use crate::failure::Failure;

// PAGES: every file of docs/errors, as `(code, text)`.
include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, as error answers have it; none lists them all
    code: Option<String>,
}

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    status: u16,
    explanation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

pub fn run(args: &ExplainArgs, format: Format) -> Result<(), Failure> {
    let Some(asked) = &args.code else { return all(format) };
    let code: ErrorCode = asked.parse().map_err(|_| unknown(asked))?;
    let page = page_of(code);
    match format {
        Format::Table | Format::Csv => output::text(page.unwrap_or(code.explanation())),
        Format::Name => output::text(&format!("{code}\n")),
        Format::Json | Format::Yaml => output::data(format, &explained(code, page)),
    }
}

/// All there is to say of a code, for those who read no pages.
pub fn page(code: ErrorCode) -> serde_json::Value {
    serde_json::json!(explained(code, page_of(code)))
}

fn page_of(code: ErrorCode) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == code.as_str()).map(|(_, page)| *page)
}

fn all(format: Format) -> Result<(), Failure> {
    let codes: Vec<Explained> = ErrorCode::all().map(|code| explained(code, None)).collect();
    let rows: Vec<Vec<String>> = codes
        .iter()
        .map(|one| vec![one.code.to_owned(), one.status.to_string(), one.explanation.to_owned()])
        .collect();
    output::print(format, &["code", "status", "explanation"], &rows, &codes)
}

fn explained(code: ErrorCode, page: Option<&'static str>) -> Explained {
    Explained { code: code.as_str(), status: code.status(), explanation: code.explanation(), page }
}

/// Codes that share a word with what was asked are most likely meant.
fn unknown(asked: &str) -> Failure {
    let words: Vec<&str> = asked.split('_').filter(|word| word.len() > 3).collect();
    let near: Vec<&str> = ErrorCode::all()
        .map(ErrorCode::as_str)
        .filter(|code| words.iter().any(|word| code.contains(word)))
        .collect();
    let hint = if near.is_empty() {
        "`gpuaas explain` lists them".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Failure::not_found(format!("there is no error code {asked}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        let pages: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        for code in ErrorCode::all() {
            assert!(pages.contains(&code.as_str()), "{code}");
        }
        assert_eq!(pages.len(), ErrorCode::all().count());
    }
}
