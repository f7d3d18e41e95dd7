//! `gpuaas bill`: takes a project's bill along as a file, and checks such a file without any server.

mod admit;
mod examine;
mod follows;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_types::Bill;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;

use self::examine::examine;
use self::follows::contradiction;
use super::client::Client;
use super::output::{self, Format};
use crate::failure::Failure;

/// However long the project's history is.
const WHOLE: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub enum BillCommand {
    /// Write everything the project was charged for, and why, into one file
    Export(ExportArgs),
    /// Check such a file on this machine, without a server
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Where to write it; standard output unless said otherwise
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An earlier bill of the project, which this one must go on from
    #[arg(long, value_name = "OLDER")]
    after: Option<PathBuf>,
}

#[derive(Serialize)]
struct Exported<'a> {
    file: &'a Path,
    as_of: DateTime<Utc>,
    entries: usize,
    records: usize,
}

/// A file is JSON, which is what `verify` reads; without one the bill itself is printed.
pub async fn export(args: &ExportArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let query = [("project_id", client.project()?.to_owned())];
    let bill: Bill = client.get_within(WHOLE, "/api/v1/billing/bill", &query).await?;
    let Some(file) = &args.to else {
        return match format {
            Format::Name => output::text(&format!("{}\n", bill.balance.project_id)),
            format => output::data(format, &bill),
        };
    };
    let text = serde_json::to_string_pretty(&bill).map_err(Failure::server)? + "\n";
    fs::write(file, text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let (entries, records) = (bill.entries.len(), bill.usage.len());
    let as_of = bill.as_of.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let row = vec![file.display().to_string(), as_of, entries.to_string(), records.to_string()];
    let exported = Exported { file, as_of: bill.as_of, entries, records };
    output::print(format, &["file", "as of", "entries", "records"], &[row], &exported)
}

pub fn verify(args: &VerifyArgs, format: Format) -> Result<(), Failure> {
    let bill = read(&args.file)?;
    let mut report = examine(&bill);
    if let Some(older) = &args.after {
        report.problems.extend(contradiction(&bill, &read(older)?));
    }
    let money = |minor: i64| match &report.currency {
        Some(currency) => domain::currency::written(minor, currency),
        None => minor.to_string(),
    };
    let row = vec![
        report.as_of.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        report.entries.to_string(),
        report.records.to_string(),
        report.series.to_string(),
        money(report.credits_minor),
        money(report.balance_minor),
        if report.problems.is_empty() { "holds".to_owned() } else { "does not hold".to_owned() },
    ];
    let heading = ["as of", "entries", "records", "series", "credits", "balance", "bill"];
    match format {
        Format::Name => output::text(&format!("{}\n", args.file.display()))?,
        format => output::print(format, &heading, &[row], &report)?,
    }
    for (quantities, why) in [
        (&report.pending, "not in the ledger yet"),
        (&report.unpriced, "without a price, so it cost nothing"),
    ] {
        for (unit, quantity) in quantities {
            output::say(&format!("{quantity} {unit}: {why}"));
        }
    }
    match report.problems.as_slice() {
        [] => Ok(()),
        [only] => Err(Failure::failed(only)),
        [first, _] => Err(Failure::failed(format!("{first}; and one more problem"))),
        [first, more @ ..] => Err(Failure::failed(format!("{first}; and {} more problems", more.len()))),
    }
}

fn read(file: &Path) -> Result<Bill, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}
