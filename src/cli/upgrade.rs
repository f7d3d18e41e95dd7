//! `gpuaas upgrade`: another version for an instance that serves; the old one serves until the new one is healthy, or the
//! plan says that it cannot.

use api_types::{PlanInstance, PlannedAction};
use clap::Args;
use serde_json::json;

use super::client::Client;
use super::lifecycle::{self, Pace};
use super::output::Format;
use super::wish::offered;
use super::{pick, plan};
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct UpgradeArgs {
    /// The instance's name, its id or the beginning of it
    instance: String,
    /// The version to go to [default: the newest that the project may deploy]
    #[arg(long)]
    version: Option<String>,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    pace: Pace,
}

pub async fn run(args: &UpgradeArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = pick::instance(client, &args.instance).await?;
    lifecycle::takes(&instance, "upgrade")?;
    let version = match &args.version {
        Some(version) => version.clone(),
        None => offered(client, &instance.app_slug).await?,
    };
    let name = &instance.display_name;
    let asked = PlanInstance {
        action: PlannedAction::Upgrade,
        target_version: Some(version.clone()),
        artifact_id: None,
    };
    let plan = plan::of(client, &instance, &asked).await?;
    let what = format!("upgrade {name} from {} to {version}", instance.version);
    lifecycle::agree(client, &plan, &what, &args.pace, format)?;
    let path = client.in_project(&format!("/app-instances/{}/upgrade", instance.id))?;
    let begun = client.post(&path, &json!({ "target_version": version, "reason": args.reason })).await?;
    lifecycle::see_through(client, begun, &format!("upgrading {name} to {version}"), &args.pace, format).await
}
