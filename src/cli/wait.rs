//! `gpuaas wait`: shows the steps of a run as `gpuaas up` does and returns when it has settled. Exit code 0 says that it
//! succeeded, 6 that it did not. An instance stands for the run that acts on it now, or did last.

use std::time::Duration;

use api_types::{RunStatus, WorkflowRun, WorkflowRunDetail};
use clap::Args;
use tokio::time::timeout;
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use super::workflows::word;
use super::{pick, steps};
use crate::failure::{Failure, Kind};

/// Unless said otherwise.
pub const LONGEST: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Args)]
pub struct WaitArgs {
    /// The run's id or its beginning; or an instance, by its name too
    #[arg(value_name = "RUN|INSTANCE")]
    what: String,
    /// Give up after this many seconds [default: 1800]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub async fn run(args: &WaitArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let (run, detail) = meant(client, &args.what).await?;
    let longest = args.timeout.map_or(LONGEST, Duration::from_secs);
    if is_settled(detail.run.status) {
        return tell(&detail, format);
    }
    until_settled(client, run, longest, format).await
}

/// The run of this id; else the newest of the instance that is called so.
async fn meant(client: &Client, text: &str) -> Result<(Uuid, WorkflowRunDetail), Failure> {
    let missing = match pick::workflow_if_any(client, text).await? {
        None => None,
        Some(id) => match find(client, id).await {
            // A whole id may be an instance's.
            Err(failure) if failure.code == Kind::NotFound && text.parse::<Uuid>().is_ok() => Some(failure),
            found => return Ok((id, found?)),
        },
    };
    // Of a whole id that is nothing here, what was said first is as true.
    let instance = pick::instance(client, text).await.map_err(|other| missing.unwrap_or(other))?;
    let path = client.in_project(&format!("/app-instances/{}/operations", instance.id))?;
    let (mut runs, _) = client.first::<WorkflowRun>(&path, &[], 1).await?;
    let newest = runs.pop().ok_or_else(|| {
        Failure::not_found(format!("no run acted on {} that is kept", instance.display_name))
    })?;
    Ok((newest.id, find(client, newest.id).await?))
}

async fn find(client: &Client, id: Uuid) -> Result<WorkflowRunDetail, Failure> {
    client.get(&client.in_project(&format!("/workflows/{id}"))?, &[]).await
}

/// Shows every step on the way, and at the end how it went.
pub async fn until_settled(
    client: &Client,
    id: Uuid,
    longest: Duration,
    format: Format,
) -> Result<(), Failure> {
    match timeout(longest, steps::see_through(client, id, format)).await {
        Ok(detail) => tell(&detail?, format),
        Err(_) => {
            let detail = find(client, id).await?;
            if is_settled(detail.run.status) {
                return tell(&detail, format);
            }
            let status = word(&detail.run.status);
            Err(Failure::server(format!("the run {id} is still {status}; it goes on")))
        }
    }
}

fn tell(detail: &WorkflowRunDetail, format: Format) -> Result<(), Failure> {
    let run = &detail.run;
    let row = vec![run.id.to_string(), run.kind.clone(), word(&run.status)];
    output::print(format, &["id", "kind", "status"], &[row], detail)?;
    let mut next = vec![format!("gpuaas workflows show {}", run.id)];
    if run.allowed_actions.iter().any(|action| action == "retry") {
        next.push(format!("gpuaas retry {}", run.id));
    }
    steps::verdict(detail, &run.kind, next)
}

/// It has finished, or nothing happens any more until somebody acts.
pub fn is_settled(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Queued | RunStatus::Running | RunStatus::Waiting | RunStatus::Compensating)
}
