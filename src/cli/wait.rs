//! `gpuaas wait`: returns when a run has settled. Exit code 0 says that it succeeded, 6 that it did not.

use std::time::{Duration, Instant};

use api_types::{RunStatus, WorkflowRunDetail};
use clap::Args;
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use super::pick;
use super::workflows::{verdict, word};
use crate::failure::Failure;

/// Unless said otherwise.
pub const LONGEST: Duration = Duration::from_secs(30 * 60);
/// What one request may wait for.
const TURN: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The run's id, or its beginning
    run: String,
    /// Give up after this many seconds [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub async fn run(args: &WaitArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let id = pick::workflow(client, &args.run).await?;
    let longest = args.timeout.map_or(LONGEST, Duration::from_secs);
    until_settled(client, id, longest, format).await
}

pub async fn until_settled(
    client: &Client,
    id: Uuid,
    longest: Duration,
    format: Format,
) -> Result<(), Failure> {
    let path = client.in_project(&format!("/workflows/{id}"))?;
    let began = Instant::now();
    loop {
        let left = longest.saturating_sub(began.elapsed());
        let turn = left.min(TURN);
        let wait =
            if turn == TURN { "30s".to_owned() } else { format!("{}ms", turn.as_millis().clamp(1, 9999)) };
        let detail: WorkflowRunDetail = client.get(&path, &[("wait", wait)]).await?;
        if is_settled(detail.run.status) {
            let run = &detail.run;
            let row = vec![run.id.to_string(), run.kind.clone(), word(&run.status)];
            output::print(format, &["id", "kind", "status"], &[row], &detail)?;
            return verdict(&id.to_string(), run.status);
        }
        if began.elapsed() >= longest {
            return Err(Failure::server(format!(
                "the run {id} is still {}; it goes on",
                word(&detail.run.status)
            )));
        }
    }
}

/// It has finished, or nothing happens any more until somebody acts.
pub fn is_settled(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting | RunStatus::Compensating)
}
