//! `gpuaas nodes`: the machines of the platform, and another release for the agent of one. For the platform's own people.

mod list;
mod update;

use clap::Subcommand;

use super::client::Client;
use super::output::Format;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum NodesCommand {
    /// The machines, whether they are heard of, and which agent each runs
    List,
    /// Have a node's agent become that of another release; it goes back by itself where the new one does not report
    Update(update::UpdateArgs),
}

pub async fn run(command: &NodesCommand, client: &Client, format: Format) -> Result<(), Failure> {
    match command {
        NodesCommand::List => list::run(client, format).await,
        NodesCommand::Update(args) => update::run(args, client, format).await,
    }
}
