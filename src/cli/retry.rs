//! `gpuaas retry`: asks a run to go on from the step that failed; one that has finished is tried again as a new run. An
//! instance that failed takes up what failed.

use api_types::{AppInstanceWithRun, Operate, Operated, WorkflowHandle};
use clap::Args;
use serde::Serialize;
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use super::workflows::word;
use super::{pick, wait};
use crate::failure::{Failure, Kind};

#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The run's id or its beginning; or an instance, by its name too
    #[arg(value_name = "RUN|INSTANCE")]
    what: String,
    /// Why; kept with the act for whoever reads the history
    #[arg(long)]
    reason: Option<String>,
    /// Then wait until the run has settled
    #[arg(long)]
    wait: bool,
}

pub async fn run(args: &RetryArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let reason = Operate { reason: args.reason.clone() };
    let missing = match pick::workflow_if_any(client, &args.what).await? {
        None => None,
        Some(id) => match retry_run(client, id, &reason).await {
            // A whole id may be an instance's.
            Err(failure) if failure.code == Kind::NotFound && args.what.parse::<Uuid>().is_ok() => {
                Some(failure)
            }
            Err(failure) => return Err(failure),
            Ok(operated) => return tell(args, client, &operated.workflow, &operated, format).await,
        },
    };
    // Of a whole id that is nothing here, what was said first is as true.
    let instance = pick::instance(client, &args.what).await.map_err(|other| missing.unwrap_or(other))?;
    let path = client.in_project(&format!("/app-instances/{}/retry", instance.id))?;
    let begun: AppInstanceWithRun = client.post(&path, &reason).await?;
    tell(args, client, &begun.workflow, &begun, format).await
}

async fn retry_run(client: &Client, id: Uuid, reason: &Operate) -> Result<Operated, Failure> {
    client.post(&client.in_project(&format!("/workflows/{id}/retry"))?, reason).await
}

async fn tell(
    args: &RetryArgs,
    client: &Client,
    handle: &WorkflowHandle,
    answer: &impl Serialize,
    format: Format,
) -> Result<(), Failure> {
    if args.wait {
        output::say(&format!("{} {} is {}", handle.kind, handle.id, word(&handle.status)));
        return wait::until_settled(client, handle.id, wait::LONGEST, format).await;
    }
    let row = vec![handle.id.to_string(), handle.kind.clone(), word(&handle.status)];
    output::print(format, &["id", "kind", "status"], &[row], answer)
}
