//! `gpuaas validate`: what the platform would say of a manifest, said here and now. No server, no login; the same code as
//! the API's. Findings are printed as compilers do, `file:line:column: message`, so that editors can jump to them.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use clap::Args;
use domain::manifest::{self, Accepted, MAX_BYTES, Manifest, Problem, Rejected};
use serde::Serialize;

use crate::cli::output::{self, Format};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Manifests in YAML or JSON; `-` is standard input
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    files: Vec<String>,
    /// Print the JSON Schema of manifests instead, for editors
    #[arg(long, conflicts_with = "files")]
    schema: bool,
}

#[derive(Serialize)]
struct Report {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    /// The normal form, as it would be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<Manifest>,
}

pub fn run(args: &ValidateArgs, format: Format) -> Result<(), Failure> {
    if args.schema {
        return match format {
            Format::Name => output::text("manifest-schema\n"),
            format => output::data(format, manifest::schema()),
        };
    }
    let reports = args.files.iter().map(|file| report(file)).collect::<Result<Vec<Report>, Failure>>()?;
    match format {
        Format::Json | Format::Yaml => output::data(format, &reports)?,
        Format::Name => {
            let valid = reports.iter().filter(|report| report.valid);
            output::text(&valid.map(|report| format!("{}\n", report.file)).collect::<String>())?;
        }
        Format::Table | Format::Csv => output::text(&reports.iter().map(lines).collect::<String>())?,
    }
    let wrong = reports.iter().filter(|report| !report.valid).count();
    match (wrong, reports.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(Failure::usage("the manifest is not valid")),
        (wrong, all) => Err(Failure::usage(format!("{wrong} of {all} manifests are not valid"))),
    }
}

fn report(file: &str) -> Result<Report, Failure> {
    let text = contents(file).map_err(|error| Failure::usage(format!("{file}: {error}")))?;
    let report = Report {
        file: if file == "-" { "<stdin>".to_owned() } else { file.to_owned() },
        valid: false,
        digest: None,
        errors: Vec::new(),
        warnings: Vec::new(),
        manifest: None,
    };
    Ok(match manifest::read(&text, format_of(file, &text)) {
        Ok(Accepted { manifest, warnings }) => Report {
            valid: true,
            digest: Some(manifest.digest()),
            warnings,
            manifest: Some(manifest),
            ..report
        },
        Err(Rejected { problems, warnings }) => Report { errors: problems, warnings, ..report },
    })
}

/// One byte more than allowed is enough to see that a file is too long.
fn contents(file: &str) -> io::Result<String> {
    let source: Box<dyn Read> = match file {
        "-" => Box::new(io::stdin().lock()),
        path => Box::new(fs::File::open(path)?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// By its name; what has none is JSON if it begins like it.
fn format_of(file: &str, text: &str) -> manifest::Format {
    let json = match Path::new(file).extension() {
        Some(extension) => extension.eq_ignore_ascii_case("json"),
        None => text.trim_start().starts_with('{'),
    };
    if json { manifest::Format::Json } else { manifest::Format::Yaml }
}

fn lines(report: &Report) -> String {
    let mut text = String::new();
    for (kind, problems) in [("error", &report.errors), ("warning", &report.warnings)] {
        for problem in problems {
            let (line, column) = (problem.line.unwrap_or(1), problem.column.unwrap_or(1));
            let what = format!("{} {}", problem.pointer, problem.message);
            text.push_str(&format!("{}:{line}:{column}: {kind}: {}\n", report.file, what.trim_start()));
        }
    }
    if let (Some(digest), Some(manifest)) = (&report.digest, &report.manifest) {
        let name = format!("{} {}", manifest.app.slug, manifest.version.version);
        text.push_str(&format!("{}: {name} is valid, {digest}\n", report.file));
    }
    text
}
