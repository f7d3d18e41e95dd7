//! `gpuaas workflows watch`: a line for every change of a run, until it has finished.

use api_types::{RunStatus, Step, WorkflowRun, WorkflowRunDetail};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{verdict, word};
use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::cli::sse::{self, Event};
use crate::cli::steps::how_far;
use crate::failure::Failure;

pub async fn run(id: Uuid, client: &Client, format: Format) -> Result<(), Failure> {
    let path = client.in_project(&format!("/workflows/{id}/stream"))?;
    if format == Format::Name {
        output::text(&format!("{id}\n"))?;
    }
    let status = sse::follow(client, &path, None, |event| tell(event, format)).await?;
    verdict(&id.to_string(), status)
}

/// Prints the event; answers the status of a run that has finished.
fn tell(event: &Event, format: Format) -> Result<Option<RunStatus>, Failure> {
    if matches!(format, Format::Json | Format::Yaml) {
        let data: Value = event.read()?;
        output::one_of_many(format, &json!({ "event": event.name, "data": data }))?;
    }
    let run = match event.name.as_str() {
        "snapshot" => {
            let detail: WorkflowRunDetail = event.read()?;
            for step in detail.steps.iter().filter(|step| step.seq.is_some()) {
                line(format, &step_line(step))?;
            }
            detail.run
        }
        "step" => {
            line(format, &step_line(&event.read()?))?;
            return Ok(None);
        }
        "run" => event.read::<WorkflowRun>()?,
        _ => return Ok(None),
    };
    let cause = run.stuck_cause.as_ref().map(|cause| format!("  {}", word(&cause.code))).unwrap_or_default();
    line(format, &format!("run   {}  {}{cause}", run.kind, word(&run.status)))?;
    Ok(run.finished_at.map(|_| run.status))
}

fn step_line(step: &Step) -> String {
    let key = if step.key.is_empty() { String::new() } else { format!("/{}", step.key) };
    let again = if step.attempt > 1 { format!("  try {}", step.attempt) } else { String::new() };
    let far = step.progress.as_ref().and_then(how_far).map(|far| format!("  {far}")).unwrap_or_default();
    format!("step  {}{key}  {}{again}{far}", step.name, word(&step.state))
}

fn line(format: Format, text: &str) -> Result<(), Failure> {
    if matches!(format, Format::Table | Format::Csv) { output::text(&format!("{text}\n")) } else { Ok(()) }
}
