//! `gpuaas down`: ends an instance and everything it holds. Called again it waits for the same end.

use api_types::{PlanInstance, PlannedAction};
use clap::Args;
use serde_json::json;

use super::client::Client;
use super::lifecycle::{self, Pace};
use super::output::Format;
use super::{pick, plan};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct DownArgs {
    /// The instance's name, its id or the beginning of it
    instance: String,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pace: Pace,
}

pub async fn run(args: &DownArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = pick::instance(client, &args.instance).await?;
    let name = &instance.display_name;
    if !instance.status.is_terminal() {
        let asked =
            PlanInstance { action: PlannedAction::Decommission, target_version: None, artifact_id: None };
        let plan = plan::of(client, &instance, &asked).await?;
        let what = format!("end {name} ({} {}) for good", instance.app_slug, instance.version);
        lifecycle::agree(client, &plan, &what, &args.pace, format)?;
    }
    let path = client.in_project(&format!("/app-instances/{}/decommission", instance.id))?;
    let begun = client.post(&path, &json!({ "reason": args.reason })).await?;
    lifecycle::see_through(client, begun, &format!("ending {name}"), &args.pace, format).await
}
