//! The client side of the command line: one file per verb, over the platform's public API and its types alone. Data goes
//! to stdout, talk to stderr.

pub mod audit;
pub mod client;
pub mod completions;
pub mod config;
pub mod explain;
pub mod login;
pub mod output;
pub mod pick;
pub mod profile;
pub mod progress;
pub mod publish;
pub mod retry;
pub mod session;
pub mod validate;
pub mod wait;
pub mod whoami;
pub mod workflows;

use clap::{Args, Subcommand};

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
        value_name = "ID",
        help = "The id of the project to act in [env: GPUAAS_PROJECT]"
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
    /// List, show or watch workflow runs
    #[command(subcommand)]
    Workflows(workflows::WorkflowsCommand),
    /// Retry a run from the step that failed
    Retry(retry::RetryArgs),
    /// Wait until a run has settled; the exit code tells how
    Wait(wait::WaitArgs),
    /// Publish an image or a file of an app: push, sign, register, verify
    Publish(publish::PublishArgs),
    /// What was done and what was refused, newest first
    Audit(audit::AuditArgs),
    /// Check manifests on this machine, without a server
    Validate(validate::ValidateArgs),
    /// What an error code means and what to do
    Explain(explain::ExplainArgs),
    /// Completions for your shell
    Completions(completions::CompletionsArgs),
}

pub async fn run(verb: &Verb, args: &ClientArgs, format: Format) -> Result<(), Failure> {
    match verb {
        Verb::Explain(explain) => return explain::run(explain, format),
        Verb::Completions(completions) => return completions::run(completions),
        Verb::Validate(validate) => return validate::run(validate, format),
        _ => {}
    }
    let surroundings = Surroundings::read()?;
    if let Verb::Login(login) = verb {
        return login::run(login, args, &surroundings, format).await;
    }
    let client = Client::open(args, &surroundings)?;
    match verb {
        Verb::Whoami => whoami::run(&client, format).await,
        Verb::Workflows(command) => workflows::run(command, &client, format).await,
        Verb::Retry(retry) => retry::run(retry, &client, format).await,
        Verb::Wait(wait) => wait::run(wait, &client, format).await,
        Verb::Publish(publish) => publish::run(publish, &client, format).await,
        Verb::Audit(audit) => audit::run(audit, &client, format).await,
        Verb::Login(_) | Verb::Explain(_) | Verb::Completions(_) | Verb::Validate(_) => Ok(()),
    }
}
