//! The one binary of the platform. Every command is one arm below; the code behind it is the file of its name.

// Nobody depends on a binary: here `pub` only means "for the other files".
#![allow(unreachable_pub)]

/// Checkpoints are many short-lived texts and a few large buffers: the system's allocator takes a tenth of our time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod cli;
mod config;
mod console;
mod failure;
mod role;
mod stop;
mod telemetry;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::cli::config::ConfigCommand;
use crate::cli::output::{self, Format};
use crate::cli::{ClientArgs, Verb};
use crate::config::{Config, Overrides};
use crate::failure::Failure;
use crate::role::agent::AgentArgs;
use crate::role::dev::DevArgs;
use crate::role::doctor::DoctorArgs;
use crate::role::serve::ServeArgs;
use crate::role::{agent, dev, doctor, migrate, serve};

#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
struct Cli {
    /// How data and errors are printed
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: Command,
}

/// What the commands that run a server here take besides their own flags.
#[derive(Debug, Args)]
struct Settings {
    /// Read this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one configuration value; may be repeated
    #[arg(long = "set", global = true, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

impl Settings {
    /// As another process of this program is given them.
    fn words(&self) -> Vec<OsString> {
        let file = self.config.iter().flat_map(|path| ["--config".into(), path.clone().into_os_string()]);
        file.chain(self.set.iter().flat_map(|pair| ["--set".into(), pair.into()])).collect()
    }
}

#[derive(Debug, Args)]
struct With<T: Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Args)]
struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Args)]
struct Nothing {}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine, with a private database
    Dev(With<DevArgs>),
    /// Serve the API and drive workflows; never changes the schema
    Serve(With<ServeArgs>),
    /// Run workloads on this machine for the platform
    Agent(With<AgentArgs>),
    /// Bring the database to this version, as its owner
    Migrate(With<Nothing>),
    /// Check the database, the schema, the promises and the workers
    Doctor(With<DoctorArgs>),
    /// Show a server's configuration and where it comes from; keep your profiles
    Config(With<ConfigArgs>),
    #[command(flatten)]
    Client(Verb),
}

#[tokio::main]
async fn main() -> ExitCode {
    // The allocator asks for memory by the dozen megabytes; in huge pages all of it would be resident at once.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are answers; anything else is a mistake of the caller.
        Err(error) if !error.use_stderr() => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return misused(&error),
    };
    match run(&cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::error(cli.output, &failure);
            failure.exit_code()
        }
    }
}

/// What is wrong with the words of a command, in the form that those words ask errors to have.
fn misused(error: &clap::Error) -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let format = Format::among(&words);
    let told = error.render().to_string();
    let failure =
        Failure::usage(told.split("\n\nUsage:").next().unwrap_or(&told).trim_start_matches("error: ").trim());
    match format {
        Format::Json | Format::Yaml => output::error(format, &failure),
        Format::Table | Format::Name | Format::Csv => {
            let _ = error.print();
        }
    }
    failure.exit_code()
}

async fn run(cli: &Cli) -> Result<(), Failure> {
    if let Command::Client(verb) = &cli.command {
        return Box::pin(cli::run(verb, &cli.client, cli.output)).await;
    }
    let overrides = overrides(&cli.command)?;
    if let Command::Config(args) = &cli.command {
        return cli::config::run(&args.own.command, &overrides, &cli.client, cli.output);
    }
    let config = Config::load(&overrides)?;
    let _telemetry = telemetry::start(&config.log, &config.telemetry)?;
    match &cli.command {
        Command::Dev(args) => Box::pin(dev::run(&config, &args.own)).await,
        Command::Serve(args) => Box::pin(serve::run(&config, &args.own)).await,
        Command::Agent(args) => Box::pin(agent::run(&args.own, args.settings.words(), cli.output)).await,
        Command::Migrate(_) => migrate::run(&config, cli.output).await,
        Command::Doctor(args) => doctor::run(&config, &args.own, cli.output).await,
        Command::Config(_) | Command::Client(_) => Ok(()),
    }
}

/// A command's own flags are values of the configuration under another name.
fn overrides(command: &Command) -> Result<Overrides, Failure> {
    let mut named = Vec::new();
    let mut flag = |name: &str, key: &str, value: Option<String>| {
        named.extend(value.map(|value| (name.to_owned(), key.to_owned(), value)));
    };
    let settings = match command {
        Command::Dev(With { own, settings }) => {
            flag("--database-url", "database.url", own.database_url.clone());
            flag("--port", "server.listen", own.port.map(|port| format!("127.0.0.1:{port}")));
            settings
        }
        Command::Serve(With { own, settings }) => {
            flag("--database-url", "database.url", own.database_url.clone());
            flag("--listen", "server.listen", own.listen.clone());
            settings
        }
        Command::Doctor(With { own, settings }) => {
            flag("--database-url", "database.url", own.database_url.clone());
            settings
        }
        Command::Agent(With { settings, .. }) => settings,
        Command::Migrate(With { settings, .. }) => settings,
        Command::Config(With { settings, .. }) => settings,
        Command::Client(_) => return Ok(Overrides::default()),
    };
    let mut flags = Vec::new();
    for pair in &settings.set {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--set {pair}: write it as section.key=value")))?;
        flags.push(("--set".to_owned(), key.to_owned(), value.to_owned()));
    }
    flags.extend(named);
    Ok(Overrides { file: settings.config.clone(), flags })
}
