//! `gpuaas audit`: what was done in a project and what was refused, newest first.

use api_types::{AuditEntry, Page};
use clap::Args;

use super::client::Client;
use super::output::{self, Format};
use super::workflows::word;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only what this principal did or tried
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Only this operation, such as `create_service_account`
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this resource, as kind:id
    #[arg(long)]
    target: Option<String>,
    /// Only what succeeded, or only what was denied
    #[arg(long, value_parser = ["succeeded", "denied"])]
    result: Option<String>,
    /// Only what was set off under this id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Only entries of this RFC 3339 time or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Entries of every project, for the platform's own people
    #[arg(long)]
    all_projects: bool,
}

pub async fn run(args: &AuditArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let path =
        if args.all_projects { "/api/v1/admin/audit".to_owned() } else { client.in_project("/audit")? };
    let mut query = vec![("limit", args.limit.to_string())];
    for (name, value) in [
        ("actor_id", &args.actor),
        ("action", &args.action),
        ("target", &args.target),
        ("result", &args.result),
        ("correlation_id", &args.correlation_id),
        ("since", &args.since),
    ] {
        query.extend(value.clone().map(|value| (name, value)));
    }
    let page: Page<AuditEntry> = client.get(&path, &query).await?;
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    output::print(format, &["id", "at", "actor", "role", "action", "target", "result"], &rows, &page)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        entry.id.to_string(),
        entry.at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        or_none(entry.actor.id.map(|id| id.to_string())),
        or_none(entry.actor.role.clone()),
        entry.action.clone(),
        entry.target.clone(),
        entry.code.clone().unwrap_or_else(|| word(&entry.result)),
    ]
}
