//! `gpuaas plan`: what deploying an app or changing an instance would do, decided by the platform as if it did, and nothing
//! done.

mod picture;

pub use picture::{brief, picture};

use api_types::{AppInstance, InstancePlan, PlanInstance, PlannedAction};
use clap::{Args, ValueEnum};

use super::client::Client;
use super::output::{self, Format};
use super::pick;
use super::wish::{Wish, offered};
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct PlanArgs {
    /// An app's slug; with --action an instance, by its name, its id or the beginning of it
    #[arg(value_name = "APP|INSTANCE")]
    about: String,
    /// What to do with an instance that is there
    #[arg(long)]
    action: Option<Action>,
    #[command(flatten)]
    wish: Wish,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    Upgrade,
    Rollback,
    Down,
}

pub async fn run(args: &PlanArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let plan = match args.action {
        None => {
            let wanted = args.wish.of(client, &args.about).await?;
            client.post(&client.in_project("/app-instances/plan")?, &wanted).await?
        }
        Some(action) => {
            let instance = pick::instance(client, &args.about).await?;
            of(client, &instance, &asked(client, action, &instance, &args.wish).await?).await?
        }
    };
    match format {
        Format::Table | Format::Csv => output::text(&picture(&plan)),
        Format::Name => output::text(&format!("{}\n", plan.workflow_kind)),
        Format::Json | Format::Yaml => output::data(format, &plan),
    }
}

/// What an action on the instance would do.
pub async fn of(
    client: &Client,
    instance: &AppInstance,
    asked: &PlanInstance,
) -> Result<InstancePlan, Failure> {
    client.post(&client.in_project(&format!("/app-instances/{}/plan", instance.id))?, asked).await
}

async fn asked(
    client: &Client,
    action: Action,
    instance: &AppInstance,
    wish: &Wish,
) -> Result<PlanInstance, Failure> {
    let version = wish.version.clone();
    let (action, target_version) = match action {
        Action::Upgrade if version.is_none() => {
            (PlannedAction::Upgrade, Some(offered(client, &instance.app_slug).await?))
        }
        Action::Upgrade => (PlannedAction::Upgrade, version),
        Action::Rollback => (PlannedAction::Rollback, version),
        Action::Down => (PlannedAction::Decommission, None),
    };
    let artifact_id = wish.artifact(client, &instance.app_slug).await?;
    Ok(PlanInstance { action, target_version, artifact_id })
}
