//! `gpuaas nodes update`: starts the run by which a node's agent becomes that of a release, and sees it through if asked to.

use api_types::NodeWithRun;
use clap::Args;
use serde_json::json;

use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::cli::workflows::word;
use crate::cli::{pick, steps};
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct UpdateArgs {
    /// The node, by its name, its id or the beginning of it
    node: String,
    /// The release of the platform whose agent it gets
    version: String,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Then wait until the node reports as the new program, or goes on as the old one
    #[arg(long)]
    wait: bool,
}

pub async fn run(args: &UpdateArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let node = pick::node(client, &args.node).await?;
    let path = format!("/api/v1/admin/nodes/{}/update", node.id);
    let begun: NodeWithRun =
        client.post(&path, &json!({ "version": args.version, "reason": args.reason })).await?;
    let run = &begun.workflow;
    if args.wait {
        output::say(&format!("{} {} is {}", run.kind, run.id, word(&run.status)));
        let detail = steps::see_through_at(client, &run.href, run.id, format).await?;
        let row = vec![node.name.clone(), run.id.to_string(), word(&detail.run.status)];
        output::print(format, &["node", "run", "status"], &[row], &detail)?;
        return steps::verdict(&detail, &format!("the update of {}", node.name), Vec::new());
    }
    let row = vec![node.name.clone(), run.id.to_string(), word(&run.status)];
    output::print(format, &["node", "run", "status"], &[row], &begun)
}
