//! `gpuaas entitle`: lets the project use an app, or no longer. What the project gave up of it before stays given up.

use api_types::{Entitlement, EntitlementSet, SetEntitlement};
use clap::Args;

use super::client::{Client, escaped};
use super::output::{self, Format};
use super::workflows::word;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct EntitleArgs {
    /// The app's slug; `gpuaas apps --all` lists them
    #[arg(value_name = "APP")]
    app: String,
    /// No longer: nothing that runs is stopped, and nothing new begins
    #[arg(long)]
    off: bool,
    /// Why; kept in the audit log
    #[arg(long)]
    reason: Option<String>,
}

pub async fn run(args: &EntitleArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let path = client.in_project("/apps/entitlements")?;
    let known: Vec<Entitlement> = client.list(&path, &[]).await?;
    let before = known.into_iter().find(|entitlement| entitlement.app_slug == args.app);
    let wanted = SetEntitlement {
        enabled: !args.off,
        policy_overrides: before.map(|before| before.policy_overrides).unwrap_or_default(),
        reason: args.reason.clone(),
    };
    let set: EntitlementSet = client.put(&format!("{path}/{}", escaped(&args.app)), &wanted).await?;
    let effective = &set.effective;
    let pairs = effective.allowed_pairs.iter();
    let pairs =
        pairs.map(|pair| format!("{}/{}", word(&pair.operating_mode), word(&pair.control_plane_scope)));
    let row = vec![
        set.entitlement.app_slug.clone(),
        if set.entitlement.enabled { "yes" } else { "no" }.to_owned(),
        pairs.collect::<Vec<String>>().join(" "),
        effective.policy.max_gpu_count.map_or_else(|| "-".to_owned(), |most| most.to_string()),
        effective.instances.to_string(),
    ];
    output::print(format, &["app", "entitled", "allowed", "most gpus", "instances"], &[row], &set)?;
    if format == Format::Table && !effective.notice.is_empty() {
        output::say(&effective.notice);
    }
    Ok(())
}
