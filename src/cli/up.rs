//! `gpuaas up`: deploys an app and tells where it is reached.

use api_types::{AppInstanceWithRun, InstancePlan};
use clap::Args;

use super::client::Client;
use super::lifecycle::{self, Pace};
use super::output::Format;
use super::wish::Wish;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct UpArgs {
    /// The app's slug; `gpuaas apps` lists them
    #[arg(value_name = "APP")]
    app: String,
    #[command(flatten)]
    wish: Wish,
    #[command(flatten)]
    pace: Pace,
}

pub async fn run(args: &UpArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let wanted = args.wish.of(client, &args.app).await?;
    let path = client.in_project("/app-instances")?;
    let plan: InstancePlan = client.post(&format!("{path}/plan"), &wanted).await?;
    let what = format!("deploy {} {} as {}", wanted.app_slug, wanted.version, wanted.display_name);
    lifecycle::agree(client, &plan, &what, &args.pace, format)?;
    let begun: AppInstanceWithRun = client.post(&path, &wanted).await?;
    lifecycle::see_through(client, begun, &format!("deploying {}", wanted.display_name), &args.pace, format)
        .await
}
