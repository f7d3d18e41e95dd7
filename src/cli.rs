//! The client side of the command line: one file per verb, over the platform's public API and its types alone. Data goes
//! to stdout, talk to stderr.

pub mod apps;
pub mod audit;
pub mod bill;
pub mod client;
pub mod completions;
pub mod config;
pub mod down;
pub mod entitle;
pub mod events;
pub mod explain;
pub mod init;
pub mod lifecycle;
pub mod login;
pub mod logs;
pub mod matrix;
pub mod mcp;
pub mod nodes;
pub mod open;
pub mod output;
pub mod pick;
pub mod plan;
pub mod profile;
pub mod progress;
pub mod ps;
pub mod publish;
pub mod receipt;
pub mod retry;
pub mod rollback;
pub mod session;
pub mod sse;
pub mod steps;
pub mod trace;
pub mod up;
pub mod upgrade;
pub mod usage;
pub mod validate;
pub mod wait;
pub mod whoami;
pub mod wish;
pub mod workflows;

use clap::{Args, Subcommand};

use self::bill::BillCommand;
use self::client::Client;
use self::output::Format;
use crate::config::Surroundings;
use crate::failure::Failure;

/// Which platform, and where in it. Each may also come from the environment or the profile.
#[derive(Debug, Clone, Default, Args)]
pub struct ClientArgs {
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help = "Which of your profiles speaks [env: GPUAAS_PROFILE]"
    )]
    pub profile: Option<String>,
    #[arg(long, global = true, value_name = "URL", help = "Where the platform is [env: GPUAAS_BASE_URL]")]
    pub url: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "PROJECT",
        help = "The project to act in, by its slug, its id or the beginning of it [env: GPUAAS_PROJECT]"
    )]
    pub project: Option<String>,
    /// Never ask anything: what is missing is an error
    #[arg(long, global = true)]
    pub no_input: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Sign in and keep the token in your profile
    Login(login::LoginArgs),
    /// Who you are to the platform, and what you may do where
    Whoami,
    /// The apps your project may deploy, or one with its versions
    Apps(apps::AppsArgs),
    /// Let your project use an app, or no longer
    Entitle(entitle::EntitleArgs),
    /// What deploying an app or changing an instance would do; nothing is done
    Plan(plan::PlanArgs),
    /// Deploy an app and tell where it is reached
    Up(up::UpArgs),
    /// Your project's instances
    Ps(ps::PsArgs),
    /// Open an instance in a browser, by a tunnel where it takes one
    Open(open::OpenArgs),
    /// What an instance wrote last
    Logs(logs::LogsArgs),
    /// What the project was told
    Events(events::EventsArgs),
    /// Everything that one request set off, as a timeline
    Trace(trace::TraceArgs),
    /// What was used and what it cost
    Usage(usage::UsageArgs),
    /// Bring an instance to another version
    Upgrade(upgrade::UpgradeArgs),
    /// Bring an instance back to what ran before
    Rollback(rollback::RollbackArgs),
    /// End an instance and everything it holds
    Down(down::DownArgs),
    /// That an instance left nothing behind, signed; or check such a receipt
    Receipt(receipt::ReceiptArgs),
    /// List, show or watch workflow runs; pause, resume or cancel one
    #[command(subcommand)]
    Workflows(workflows::WorkflowsCommand),
    /// Retry a run from the step that failed, or an instance that failed
    Retry(retry::RetryArgs),
    /// Wait until a run, or what acts on an instance, has settled; the exit code tells how
    Wait(wait::WaitArgs),
    /// Publish an image or a file of an app: push, sign, register, verify
    Publish(publish::PublishArgs),
    /// The platform's machines; have the agent of one become that of another release
    #[command(subcommand)]
    Nodes(nodes::NodesCommand),
    /// What was done and what was refused, newest first
    Audit(audit::AuditArgs),
    /// Take a project's bill along, or check one without a server
    #[command(subcommand)]
    Bill(bill::BillCommand),
    /// Begin a manifest
    Init(init::InitArgs),
    /// Check manifests on this machine, without a server
    Validate(validate::ValidateArgs),
    /// The platform as tools for an agent, over stdin and stdout
    Mcp,
    /// What an error code means and what to do
    Explain(explain::ExplainArgs),
    /// Completions for your shell
    Completions(completions::CompletionsArgs),
}

pub async fn run(verb: &Verb, args: &ClientArgs, format: Format) -> Result<(), Failure> {
    match verb {
        Verb::Explain(explain) => return explain::run(explain, format),
        Verb::Completions(completions) => return completions::run(completions, format),
        Verb::Validate(validate) => return validate::run(validate, format),
        Verb::Init(init) => return init::run(init, args, format),
        Verb::Receipt(receipt) => {
            if let Some(checked) = receipt.offline(format) {
                return checked;
            }
        }
        Verb::Bill(BillCommand::Verify(verify)) => return bill::verify(verify, format),
        _ => {}
    }
    let surroundings = Surroundings::read()?;
    if let Verb::Login(login) = verb {
        return login::run(login, args, &surroundings, format).await;
    }
    let mut client = Client::open(args, &surroundings)?;
    // Who one is, is told wherever one is; and machines are of no project.
    if !matches!(verb, Verb::Whoami | Verb::Nodes(_)) {
        client.find_project().await?;
    }
    match verb {
        Verb::Whoami => whoami::run(&client, format).await,
        Verb::Apps(apps) => apps::run(apps, &client, format).await,
        Verb::Entitle(entitle) => entitle::run(entitle, &client, format).await,
        Verb::Plan(plan) => plan::run(plan, &client, format).await,
        Verb::Up(up) => up::run(up, &client, format).await,
        Verb::Ps(ps) => ps::run(ps, &client, format).await,
        Verb::Open(open) => open::run(open, &client, format).await,
        Verb::Receipt(receipt) => receipt::run(receipt, &client, format).await,
        Verb::Logs(logs) => logs::run(logs, &client, format).await,
        Verb::Events(events) => events::run(events, &client, format).await,
        Verb::Trace(trace) => trace::run(trace, &client, format).await,
        Verb::Mcp => mcp::run(client).await,
        Verb::Usage(usage) => usage::run(usage, &client, format).await,
        Verb::Upgrade(upgrade) => upgrade::run(upgrade, &client, format).await,
        Verb::Rollback(rollback) => rollback::run(rollback, &client, format).await,
        Verb::Down(down) => down::run(down, &client, format).await,
        Verb::Workflows(command) => workflows::run(command, &client, format).await,
        Verb::Retry(retry) => retry::run(retry, &client, format).await,
        Verb::Wait(wait) => wait::run(wait, &client, format).await,
        Verb::Publish(publish) => publish::run(publish, &client, format).await,
        Verb::Nodes(command) => nodes::run(command, &client, format).await,
        Verb::Audit(audit) => audit::run(audit, &client, format).await,
        Verb::Bill(BillCommand::Export(export)) => bill::export(export, &client, format).await,
        Verb::Bill(BillCommand::Verify(_)) => Ok(()),
        Verb::Login(_) | Verb::Explain(_) | Verb::Completions(_) | Verb::Validate(_) | Verb::Init(_) => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    /// They go on running, so of them only what they say when they cannot begin is kept; other stories run them.
    const GO_ON: [&str; 4] = ["dev", "serve", "agent", "mcp"];

    /// Every command that does something by itself, by its words. Those that people do not see are no matter of theirs.
    fn commands(command: &clap::Command, words: &[&str], all: &mut Vec<String>) {
        let shown = |one: &&clap::Command| one.get_name() != "help" && !one.is_hide_set();
        let mut below = command.get_subcommands().filter(shown).peekable();
        if !words.is_empty() && (below.peek().is_none() || !command.is_subcommand_required_set()) {
            all.push(words.join("_"));
        }
        for one in below {
            commands(one, &[words, &[one.get_name()]].concat(), all);
        }
    }

    #[test]
    fn every_command_has_its_six_snapshots() {
        let mut all = Vec::new();
        commands(&crate::Cli::command(), &[], &mut all);
        assert!(all.len() > 40 && all.contains(&"workflows_cancel".to_owned()), "{all:?}");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/snapshots");
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let kept: BTreeSet<String> = files
            .filter_map(|file| file.file_name().into_string().ok())
            .filter_map(|name| Some(name.strip_prefix("it__cli__every__")?.strip_suffix(".snap")?.to_owned()))
            .collect();
        let ways = |how: &'static str| ["table", "json", "terminal"].map(|way| format!("{how}_{way}"));
        let mut missing = Vec::new();
        for command in &all {
            let well = if GO_ON.contains(&command.split('_').next().unwrap_or_default()) {
                None
            } else {
                Some("well")
            };
            let needed = well.into_iter().chain(["badly"]).flat_map(ways);
            missing.extend(needed.map(|way| format!("{command}_{way}")).filter(|name| !kept.contains(name)));
        }
        assert!(missing.is_empty(), "tests/cli/every shows these not yet: {missing:#?}");
        let is_known = |name: &String| all.iter().any(|command| name.starts_with(&format!("{command}_")));
        let left: Vec<&String> = kept.iter().filter(|name| !is_known(name)).collect();
        assert!(left.is_empty(), "these are of commands that are no more: {left:#?}");
    }
}
