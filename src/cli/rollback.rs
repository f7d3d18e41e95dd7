//! `gpuaas rollback`: back to what ran before, or to an earlier version.

use api_types::{PlanInstance, PlannedAction};
use clap::Args;
use serde_json::json;

use super::client::Client;
use super::lifecycle::{self, Pace};
use super::output::Format;
use super::{pick, plan};
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct RollbackArgs {
    /// The instance's name, its id or the beginning of it
    instance: String,
    /// The version to go back to [default: the last good one]
    #[arg(long)]
    version: Option<String>,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pace: Pace,
}

pub async fn run(args: &RollbackArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = pick::instance(client, &args.instance).await?;
    lifecycle::takes(&instance, "rollback")?;
    let asked = PlanInstance {
        action: PlannedAction::Rollback,
        target_version: args.version.clone(),
        artifact_id: None,
    };
    let plan = plan::of(client, &instance, &asked).await?;
    let name = &instance.display_name;
    // What was agreed to is what is asked for, whatever the last good version is by then.
    let to = plan.effective.as_ref().map(|effective| effective.version.clone()).or(args.version.clone());
    let words = to.as_deref().unwrap_or("the last good version");
    let what = format!("roll {name} back from {} to {words}", instance.version);
    lifecycle::agree(client, &plan, &what, &args.pace, format)?;
    let path = client.in_project(&format!("/app-instances/{}/rollback", instance.id))?;
    let begun = client.post(&path, &json!({ "target_version": to, "reason": args.reason })).await?;
    lifecycle::see_through(client, begun, &format!("rolling {name} back"), &args.pace, format).await
}
