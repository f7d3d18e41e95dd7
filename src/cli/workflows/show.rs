//! `gpuaas workflows show`: a run, why it does not advance if it does not, and its steps.

use api_types::{Step, WorkflowRunDetail};
use uuid::Uuid;

use super::word;
use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::failure::Failure;

pub async fn run(id: Uuid, client: &Client, format: Format) -> Result<(), Failure> {
    let detail: WorkflowRunDetail = client.get(&client.in_project(&format!("/workflows/{id}"))?, &[]).await?;
    match format {
        Format::Table | Format::Csv => {
            output::text(&head(&detail))?;
            let rows: Vec<Vec<String>> = detail.steps.iter().map(row).collect();
            output::print(format, &["step", "state", "tries", "started", "took", "error"], &rows, &detail)
        }
        Format::Name => output::text(&format!("{id}\n")),
        Format::Json | Format::Yaml => output::data(format, &detail),
    }
}

fn head(detail: &WorkflowRunDetail) -> String {
    let run = &detail.run;
    let mut text = format!("{} {} is {}\n", run.kind, run.id, word(&run.status));
    if let Some(cause) = &run.stuck_cause {
        text.push_str(&format!("{}: {}\n", word(&cause.code), cause.next_action));
    }
    if let Some(message) = run.error.as_ref().and_then(|error| error["message"].as_str()) {
        text.push_str(&format!("error: {message}\n"));
    }
    if !run.allowed_actions.is_empty() {
        text.push_str(&format!("allowed: {}\n", run.allowed_actions.join(", ")));
    }
    text.push_str(&format!("correlation id {}\n\n", run.correlation_id));
    text
}

fn row(step: &Step) -> Vec<String> {
    let name = if step.key.is_empty() { step.name.clone() } else { format!("{}/{}", step.name, step.key) };
    let started = step.started_at.map_or_else(|| "-".to_owned(), |at| at.format("%H:%M:%S").to_string());
    let took = match (step.started_at, step.finished_at) {
        (Some(from), Some(to)) => format!("{:.1}s", (to - from).num_milliseconds() as f64 / 1e3),
        _ => "-".to_owned(),
    };
    let error = step.error.as_ref().and_then(|error| error["message"].as_str()).unwrap_or("-").to_owned();
    vec![name, word(&step.state), step.attempt.to_string(), started, took, error]
}
