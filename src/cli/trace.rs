//! `gpuaas trace`: everything that one request set off, as one timeline: requests, runs, steps, tasks of nodes, events, usage.

use api_types::TraceEntry;
use clap::Args;

use super::client::{Client, escaped};
use super::output::{self, Format};
use super::workflows::word;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The correlation id, as every answer and error has it
    #[arg(value_name = "CORRELATION_ID")]
    id: String,
}

pub async fn run(args: &TraceArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let entries: Vec<TraceEntry> = client.list(&format!("/api/v1/trace/{}", escaped(&args.id)), &[]).await?;
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    output::print(format, &["id", "at", "took", "kind", "name", "status", "about"], &rows, &entries)
}

fn row(entry: &TraceEntry) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let took =
        entry.finished_at.map(|end| format!("{:.1}s", (end - entry.at).num_milliseconds() as f64 / 1e3));
    vec![
        entry.id.clone(),
        entry.at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        or_none(took),
        word(&entry.kind),
        entry.name.clone(),
        or_none(entry.code.clone().or_else(|| entry.status.clone())),
        or_none(entry.subject.clone()),
    ]
}
