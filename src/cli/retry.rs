//! `gpuaas retry`: asks a run to go on from the step that failed; one that has finished is tried again as a new run.

use api_types::{Operate, Operated};
use clap::Args;

use super::client::Client;
use super::output::{self, Format};
use super::workflows::word;
use super::{pick, wait};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct RetryArgs {
    /// The run's id, or its beginning
    run: String,
    /// Why; kept with the act for whoever reads the history
    #[arg(long)]
    reason: Option<String>,
    /// Then wait until the run has settled
    #[arg(long)]
    wait: bool,
}

pub async fn run(args: &RetryArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let id = pick::workflow(client, &args.run).await?;
    let path = client.in_project(&format!("/workflows/{id}/retry"))?;
    let operated: Operated = client.post(&path, &Operate { reason: args.reason.clone() }).await?;
    let handle = &operated.workflow;
    if args.wait {
        output::say(&format!("{} {} is {}", handle.kind, handle.id, word(&handle.status)));
        return wait::until_settled(client, handle.id, wait::LONGEST, format).await;
    }
    let row = vec![handle.id.to_string(), handle.kind.clone(), word(&handle.status)];
    output::print(format, &["id", "kind", "status"], &[row], &operated)
}
