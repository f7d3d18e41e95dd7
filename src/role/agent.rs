//! `gpuaas agent`: the node agent. It enrols this machine once with a one-time token and from then on does what the
//! platform asks of the node.

mod doctor;
mod engine;

pub use engine::{AnyDriver, Choice, choose, resume};

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use agent::{Agent, Driver, Home, Newcomer, Now, Settings, detect_inventory, enrol};
use clap::{Args, Subcommand};
use clients::Clock;
use clients::clock::SystemClock;
use domain::Secret;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::failure::Failure;
use crate::stop::Stop;

#[derive(Debug, Args)]
pub struct AgentArgs {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    /// Register this machine with a one-time token first; `-` reads the token from standard input
    #[arg(long, value_name = "TOKEN", requires = "platform")]
    enroll: Option<String>,
    /// Where the platform is reached; remembered once the machine has enrolled
    #[arg(long, value_name = "URL")]
    platform: Option<String>,
    /// Where the agent keeps its key and its journal
    #[arg(long, value_name = "DIR", default_value = "/var/lib/gpuaas-agent", global = true)]
    data_dir: PathBuf,
    /// What runs the containers
    #[arg(long, value_enum, default_value_t, global = true)]
    driver: Choice,
    /// Where the container engine listens
    #[arg(long, value_name = "ADDRESS", env = "DOCKER_HOST", global = true)]
    docker_host: Option<String>,
    /// The address under which people reach this machine
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    address: String,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Check the container engine, the GPUs and the enrolment of this machine
    Doctor,
}

pub async fn run(args: &AgentArgs) -> Result<(), Failure> {
    // No client is built without a provider; an error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let home = Home::at(&args.data_dir).map_err(Failure::usage)?;
    if let Some(AgentCommand::Doctor) = args.command {
        return doctor::run(&home, args.driver, args.docker_host.as_deref()).await;
    }
    let docker = args.docker_host.as_deref();
    let stop = Stop::on_signals().map_err(Failure::server)?;
    let driver = if let (Some(token), Some(platform)) = (&args.enroll, &args.platform) {
        let (driver, token) = (choose(args.driver, docker).await?, read_token(token)?);
        let name = register(&home, platform, &token, &args.address, driver.name(), 0).await?;
        info!(node = name, driver = driver.name(), "enrolled");
        driver
    } else {
        let enrolled = args.driver.enrolled(&home.identity().map_err(Failure::usage)?.driver)?;
        tokio::select! {
            driver = resume(enrolled, docker) => driver,
            () = stop.asked.cancelled() => return Ok(()),
        }
    };
    serve(home, driver, stop.asked.clone()).await
}

/// Does what is asked until told to stop.
pub async fn serve(home: Home, driver: AnyDriver, stop: CancellationToken) -> Result<(), Failure> {
    let settings = Settings::new(env!("CARGO_PKG_VERSION"));
    match driver {
        AnyDriver::Docker(docker) => life(home, docker, settings, stop).await,
        AnyDriver::Simulated(simulated) => life(home, simulated, settings, stop).await,
    }
}

async fn life<D: Driver>(
    home: Home,
    driver: D,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let now: Now = Arc::new(|| SystemClock.now());
    let agent = Agent::open(home, driver, settings, now).map_err(Failure::usage)?;
    agent.run(stop).await;
    Ok(())
}

/// Registers this machine's own key; answers the node's name.
pub async fn register(
    home: &Home,
    platform: &str,
    token: &Secret<String>,
    address: &str,
    driver: &str,
    simulated_gpus: u32,
) -> Result<String, Failure> {
    let key = home.key().map_err(Failure::usage)?;
    let inventory = detect_inventory(simulated_gpus).await;
    let agent_version = env!("CARGO_PKG_VERSION");
    let newcomer = Newcomer { key: &key, address, driver, agent_version, inventory: &inventory };
    let (identity, enrolled) = enrol(platform, token, &newcomer).await.map_err(Failure::server)?;
    home.enrolled(&identity, &enrolled.keyring).map_err(Failure::usage)?;
    Ok(identity.name)
}

/// From standard input it shows up in no list of processes.
fn read_token(given: &str) -> Result<Secret<String>, Failure> {
    if given != "-" {
        return Ok(Secret::new(given.to_owned()));
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::usage)?;
    Ok(Secret::new(text.trim().to_owned()))
}
