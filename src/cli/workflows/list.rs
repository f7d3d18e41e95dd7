//! `gpuaas workflows list`: the filters are the API's own.

use api_types::{Page, WorkflowRun};
use clap::Args;

use super::word;
use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only runs in these states, separated by commas
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only runs of this kind, such as instance.deploy
    #[arg(long)]
    kind: Option<String>,
    /// Only runs that do not advance for this reason
    #[arg(long)]
    cause: Option<String>,
    /// Only runs about this resource
    #[arg(long)]
    subject: Option<String>,
    /// Only what was set off under this id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Only runs made at this RFC 3339 time or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only runs that were neither tried again nor followed by another about the same resource
    #[arg(long)]
    latest: bool,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Runs of every project, for the platform's own people
    #[arg(long)]
    all_projects: bool,
}

pub async fn run(args: &ListArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let path = if args.all_projects {
        "/api/v1/admin/workflows".to_owned()
    } else {
        client.in_project("/workflows")?
    };
    let mut query = vec![("limit", args.limit.to_string())];
    for (name, value) in [
        ("status", &args.status),
        ("kind", &args.kind),
        ("cause", &args.cause),
        ("subject", &args.subject),
        ("correlation_id", &args.correlation_id),
        ("since", &args.since),
    ] {
        query.extend(value.clone().map(|value| (name, value)));
    }
    if args.latest {
        query.push(("latest", "true".to_owned()));
    }
    let page: Page<WorkflowRun> = client.get(&path, &query).await?;
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    output::print(format, &["id", "kind", "status", "cause", "subject", "created"], &rows, &page)?;
    if page.next_cursor.is_some() && format == Format::Table {
        output::say("there are more: narrow the list, or raise --limit");
    }
    Ok(())
}

fn row(run: &WorkflowRun) -> Vec<String> {
    let cause = run.stuck_cause.as_ref().map_or_else(|| "-".to_owned(), |cause| word(&cause.code));
    vec![
        run.id.to_string(),
        run.kind.clone(),
        word(&run.status),
        cause,
        run.subject.clone().unwrap_or_else(|| "-".to_owned()),
        run.created_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    ]
}
