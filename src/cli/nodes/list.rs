//! `gpuaas nodes list`: every node, by its name.

use api_types::Node;

use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::failure::Failure;

pub async fn run(client: &Client, format: Format) -> Result<(), Failure> {
    let mut all: Vec<Node> = client.list("/api/v1/admin/nodes", &[]).await?;
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    output::print(format, &["id", "name", "status", "driver", "agent", "heard"], &rows, &all)?;
    if all.is_empty() && format == Format::Table {
        output::say("there is no node yet; the console's page of nodes adds one");
    }
    Ok(())
}

fn row(node: &Node) -> Vec<String> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let heard = node.last_seen_at.map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    vec![
        node.id.to_string(),
        node.name.clone(),
        node.status.as_str().to_owned(),
        or_none(&node.driver),
        or_none(&node.agent_version),
        or_none(&heard),
    ]
}
