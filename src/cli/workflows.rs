//! `gpuaas workflows`: the runs of a project as a list, one with its steps, or one as it goes on; and what an operator asks
//! of a run.

mod list;
mod operate;
mod show;
mod watch;

use api_types::RunStatus;
use clap::Subcommand;
use serde::Serialize;

use super::client::Client;
use super::output::Format;
use super::pick;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum WorkflowsCommand {
    /// Runs, newest first
    List(list::ListArgs),
    /// A run with its steps
    Show {
        /// The run's id, or its beginning
        run: String,
    },
    /// A run's changes as they happen, until it has finished
    Watch {
        /// The run's id, or its beginning
        run: String,
    },
    /// Stop a run before its next step
    Pause(operate::OperateArgs),
    /// Let a paused or stuck run go on; with --force, take one from a process that has been silent for long
    Resume(operate::ResumeArgs),
    /// End a run and undo what it did; on a terminal it asks, and shows first what that is
    Cancel(operate::CancelArgs),
}

pub async fn run(command: &WorkflowsCommand, client: &Client, format: Format) -> Result<(), Failure> {
    match command {
        WorkflowsCommand::List(args) => list::run(args, client, format).await,
        WorkflowsCommand::Show { run } => show::run(pick::workflow(client, run).await?, client, format).await,
        WorkflowsCommand::Watch { run } => {
            watch::run(pick::workflow(client, run).await?, client, format).await
        }
        WorkflowsCommand::Pause(args) => operate::run("pause", args, client, format).await,
        WorkflowsCommand::Resume(args) => operate::resume(args, client, format).await,
        WorkflowsCommand::Cancel(args) => operate::cancel(args, client, format).await,
    }
}

/// A word of the API, as the API writes it.
pub fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Whether a run that has come to rest did what it was for.
pub fn verdict(run: &str, status: RunStatus) -> Result<(), Failure> {
    match status {
        RunStatus::Succeeded => Ok(()),
        other => Err(Failure::failed(format!("the run {run} is {}", word(&other)))),
    }
}
