//! `gpuaas workflows watch`: a line for every change of a run, until it has finished. A stream that breaks off is taken
//! up again where it was.

use std::time::Duration;

use api_types::{RunStatus, Step, WorkflowRun, WorkflowRunDetail};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::events::{Event, Reader};
use super::{verdict, word};
use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::failure::Failure;

const RECONNECT: Duration = Duration::from_secs(1);
/// How often in a row a stream may bring nothing before its server is given up.
const PATIENCE: u32 = 30;

pub async fn run(id: Uuid, client: &Client, format: Format) -> Result<(), Failure> {
    let path = client.in_project(&format!("/workflows/{id}/stream"))?;
    let (mut last, mut fruitless) = (None, 0);
    loop {
        match follow(client, &path, &mut last, format).await {
            Ok(Some(status)) => return verdict(&id.to_string(), status),
            Ok(None) => fruitless = 0,
            Err(failure) if last.is_none() || failure.answer.is_some() => return Err(failure),
            Err(failure) if fruitless >= PATIENCE => return Err(failure),
            Err(_) => fruitless += 1,
        }
        sleep(RECONNECT).await;
    }
}

/// One stream to its end: how the run finished, or nothing if it has not.
async fn follow(
    client: &Client,
    path: &str,
    last: &mut Option<String>,
    format: Format,
) -> Result<Option<RunStatus>, Failure> {
    let mut stream = client.open_stream(path, last.as_deref()).await?;
    let mut reader = Reader::default();
    let broken = |_| Failure::server("the stream broke off");
    while let Some(bytes) = stream.chunk().await.map_err(broken)? {
        reader.push(&bytes);
        while let Some(event) = reader.next() {
            let finished = tell(&event, format)?;
            if event.id.is_some() {
                *last = event.id;
            }
            if finished.is_some() {
                return Ok(finished);
            }
        }
    }
    Ok(None)
}

/// Prints the event; answers the status of a run that has finished.
fn tell(event: &Event, format: Format) -> Result<Option<RunStatus>, Failure> {
    if matches!(format, Format::Json | Format::Yaml) {
        let data: Value = understood(event)?;
        output::text(&format!("{}\n", json!({ "event": event.name, "data": data })))?;
    }
    let run = match event.name.as_str() {
        "snapshot" => {
            let detail: WorkflowRunDetail = understood(event)?;
            for step in detail.steps.iter().filter(|step| step.seq.is_some()) {
                line(format, &step_line(step))?;
            }
            detail.run
        }
        "step" => {
            line(format, &step_line(&understood(event)?))?;
            return Ok(None);
        }
        "run" => understood::<WorkflowRun>(event)?,
        _ => return Ok(None),
    };
    let cause = run.stuck_cause.as_ref().map(|cause| format!("  {}", word(&cause.code))).unwrap_or_default();
    line(format, &format!("run   {}  {}{cause}", run.kind, word(&run.status)))?;
    Ok(run.finished_at.map(|_| run.status))
}

fn step_line(step: &Step) -> String {
    let key = if step.key.is_empty() { String::new() } else { format!("/{}", step.key) };
    let again = if step.attempt > 1 { format!("  try {}", step.attempt) } else { String::new() };
    format!("step  {}{key}  {}{again}", step.name, word(&step.state))
}

fn line(format: Format, text: &str) -> Result<(), Failure> {
    if format == Format::Table { output::text(&format!("{text}\n")) } else { Ok(()) }
}

fn understood<T: DeserializeOwned>(event: &Event) -> Result<T, Failure> {
    serde_json::from_str(&event.data).map_err(|error| {
        Failure::server(format!("an event is not understood: {error}; this command may be too old"))
    })
}
