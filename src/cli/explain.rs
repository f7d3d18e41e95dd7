//! `gpuaas explain CODE`: the page of an error code or of a status reason, from the binary itself: it works where nothing
//! else does. A word that is both is explained as both.

use clap::Args;
use domain::{ErrorCode, StatusReason};
use serde::Serialize;

use super::output::{self, Format};
use crate::failure::Failure;

// PAGES: every file of docs/errors, as `(code, text)`; REASONS: every file of its folder `reasons`.
include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code, as error answers have it, or the reason of an instance; none lists the codes
    code: Option<String>,
}

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    status: u16,
    explanation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
    /// Instances have a reason of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ExplainedReason>,
}

#[derive(Serialize)]
struct ExplainedReason {
    status_reason: &'static str,
    kind: domain::ReasonKind,
    page: &'static str,
}

pub fn run(args: &ExplainArgs, format: Format) -> Result<(), Failure> {
    let Some(asked) = &args.code else { return all(format) };
    let (code, reason) = (asked.parse::<ErrorCode>().ok(), asked.parse::<StatusReason>().ok());
    match format {
        _ if code.is_none() && reason.is_none() => Err(unknown(asked)),
        Format::Name => output::text(&format!("{asked}\n")),
        Format::Table | Format::Csv => {
            let code = code.map(|code| page_of(code).unwrap_or(code.explanation()));
            let pages: Vec<&str> = code.into_iter().chain(reason.map(page_of_reason)).collect();
            output::text(&pages.join("\n"))
        }
        Format::Json | Format::Yaml => output::data(format, &about(asked)?),
    }
}

/// All there is to say of a code or of a status reason.
pub fn about(asked: &str) -> Result<serde_json::Value, Failure> {
    let reason = asked.parse().ok().map(explained_reason);
    let value = match (asked.parse::<ErrorCode>(), reason) {
        (Ok(code), reason) => serde_json::to_value(Explained { reason, ..explained(code, page_of(code)) }),
        (Err(_), Some(reason)) => serde_json::to_value(reason),
        (Err(_), None) => return Err(unknown(asked)),
    };
    value.map_err(Failure::server)
}

fn page_of(code: ErrorCode) -> Option<&'static str> {
    PAGES.iter().find(|(name, _)| *name == code.as_str()).map(|(_, page)| *page)
}

fn page_of_reason(reason: StatusReason) -> &'static str {
    REASONS.iter().find(|(name, _)| *name == reason.as_str()).map_or("", |(_, page)| page)
}

fn explained_reason(reason: StatusReason) -> ExplainedReason {
    ExplainedReason { status_reason: reason.as_str(), kind: reason.kind(), page: page_of_reason(reason) }
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
    Explained {
        code: code.as_str(),
        status: code.status(),
        explanation: code.explanation(),
        page,
        reason: None,
    }
}

/// Codes that share a word with what was asked are most likely meant.
fn unknown(asked: &str) -> Failure {
    let words: Vec<&str> = asked.split('_').filter(|word| word.len() > 3).collect();
    let known = ErrorCode::all().map(ErrorCode::as_str).chain(StatusReason::ALL.map(StatusReason::as_str));
    let near: Vec<&str> = known.filter(|code| words.iter().any(|word| code.contains(word))).collect();
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

    #[test]
    fn every_status_reason_has_its_page() {
        for reason in StatusReason::ALL {
            assert!(page_of_reason(reason).contains("## What to do"), "{reason}");
        }
        assert_eq!(REASONS.len(), StatusReason::ALL.len());
    }
}
