//! `gpuaas agent`: the node agent. It enrols this machine once with a one-time token and from then on sees that a process works
//! which does what the platform asks of the node; that process may be of another release than this one.

mod doctor;
mod engine;
mod work;

pub use engine::{AnyDriver, Choice, DockerAt, choose, resume};

pub use work::serve;

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use agent::{
    Home, KEEP_IMAGES, Newcomer, SPARE_NETWORKS, Settings, Subnet, Supervisor, detect_inventory, enrol,
};
use clap::{Args, Subcommand, ValueEnum};
use domain::Secret;
use tracing::info;

use crate::cli::output::Format;
use crate::failure::Failure;
use crate::stop::Stop;

/// With the beat before it and the start after it, still within the minute after which a silent node is given up for lost.
const TRIAL_SECONDS: u64 = 40;
const DAY: u64 = 24 * 3600;
/// Where a machine is reached that was not told otherwise when it enrolled.
const LOOPBACK: &str = "127.0.0.1";
const MOST_SPARE_NETWORKS: usize = 64;
const KEEP_DAYS: u64 = KEEP_IMAGES.as_secs() / DAY;

#[derive(Debug, Args)]
pub struct AgentArgs {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    /// Register this machine with a one-time token first, unless it was by this very token; `-` reads it from standard input
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
    /// The addresses from which instances get networks of their own; nothing else should be reached by them
    #[arg(long, value_name = "SUBNET", default_value_t = Subnet::POOL, global = true)]
    subnet_pool: Subnet,
    /// How many networks are made ahead, so that whoever deploys need not wait for one
    #[arg(long, value_name = "COUNT", default_value_t = SPARE_NETWORKS, value_parser = count_ahead, global = true)]
    spare_networks: usize,
    /// How many days an image stays that no instance runs any more or may return to
    #[arg(long, value_name = "DAYS", default_value_t = KEEP_DAYS, value_parser = clap::value_parser!(u64).range(1..=3650), global = true)]
    keep_images_days: u64,
    /// The address under which people reach this machine; a machine that has enrolled keeps the one it has unless told another
    /// [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// How long the program of another release may take to report before this machine returns to the one it has
    #[arg(long, value_name = "SECONDS", default_value_t = TRIAL_SECONDS, value_parser = clap::value_parser!(u64).range(1..=600))]
    trial_seconds: u64,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Check the container engine, the GPUs and the enrolment of this machine
    Doctor,
    /// The agent itself, as `gpuaas agent` starts it: it ends when its standard input does
    #[command(hide = true)]
    Work {
        /// Report first, say so on standard output, and do nothing until told to go on
        #[arg(long)]
        trial: bool,
    },
}

pub async fn run(args: &AgentArgs, settings: Vec<OsString>, format: Format) -> Result<(), Failure> {
    // No client is built without a provider; an error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let home = Home::at(&args.data_dir).map_err(Failure::usage)?;
    let docker = DockerAt { host: args.docker_host.as_deref(), pool: args.subnet_pool };
    match args.command {
        Some(AgentCommand::Doctor) => return doctor::run(&home, args.driver, docker, format).await,
        Some(AgentCommand::Work { trial }) => {
            return work::run(home, args.driver, docker, args.settings(), trial).await;
        }
        None => {}
    }
    let stop = Stop::on_signals().map_err(Failure::server)?;
    // Before anything is written: another may be at work here.
    let alone = home.supervise().map_err(Failure::conflict)?;
    if let (Some(token), Some(platform)) = (&args.enroll, &args.platform) {
        let token = read_token(token)?;
        // A service manager starts it by the same line again and again.
        if !home.identity().is_ok_and(|identity| identity.came_by(&token)) {
            let driver = choose(args.driver, docker).await?;
            let address = args.address.as_deref().unwrap_or(LOOPBACK);
            let name = register(&home, platform, &token, address, driver.name(), 0).await?;
            info!(node = name, driver = driver.name(), "enrolled");
        }
    }
    // Whatever a start again would not help with is said here, by the process that somebody looks at.
    args.driver.enrolled(&home.identity().map_err(Failure::usage)?.driver)?;
    let supervisor = Supervisor {
        home,
        alone,
        installed: std::env::current_exe().map_err(Failure::server)?,
        arguments: args.of_the_work(settings),
        on_trial: "--trial".into(),
        patience: Duration::from_secs(args.trial_seconds),
    };
    supervisor.run(&stop.asked).await.map_err(Failure::server)
}

impl AgentArgs {
    fn settings(&self) -> Settings {
        let keep_images = Duration::from_secs(self.keep_images_days * DAY);
        let (address, spare_networks) = (self.address.clone(), self.spare_networks);
        Settings { address, keep_images, spare_networks, ..work::usual() }
    }

    /// The words with which the agent itself is started. They are a promise to other releases: what is added to them must be
    /// known to the programs that nodes may be asked to try.
    fn of_the_work(&self, settings: Vec<OsString>) -> Vec<OsString> {
        let driver = self.driver.to_possible_value();
        let driver = driver.map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut words: Vec<OsString> =
            vec!["agent".into(), "--data-dir".into(), self.data_dir.clone().into()];
        words.extend(["--driver".into(), driver.into()]);
        words.extend(self.address.iter().flat_map(|address| ["--address".into(), address.into()]));
        words.extend(self.docker_host.iter().flat_map(|host| ["--docker-host".into(), host.into()]));
        if self.subnet_pool != Subnet::POOL {
            words.extend(["--subnet-pool".into(), self.subnet_pool.to_string().into()]);
        }
        if self.spare_networks != SPARE_NETWORKS {
            words.extend(["--spare-networks".into(), self.spare_networks.to_string().into()]);
        }
        if self.keep_images_days != KEEP_DAYS {
            words.extend(["--keep-images-days".into(), self.keep_images_days.to_string().into()]);
        }
        words.extend(settings);
        words.push("work".into());
        words
    }
}

/// More than anybody deploys at once would only use up addresses.
fn count_ahead(given: &str) -> Result<usize, String> {
    let count = given.parse().ok().filter(|count| *count <= MOST_SPARE_NETWORKS);
    count.ok_or_else(|| format!("must be a number from 0 to {MOST_SPARE_NETWORKS}"))
}

/// Registers a key that this machine makes for it; answers the node's name.
pub async fn register(
    home: &Home,
    platform: &str,
    token: &Secret<String>,
    address: &str,
    driver: &str,
    simulated_gpus: u32,
) -> Result<String, Failure> {
    let key = home.newcomer(token).map_err(Failure::usage)?;
    let inventory = detect_inventory(simulated_gpus).await;
    let agent_version = env!("CARGO_PKG_VERSION");
    let newcomer = Newcomer { key: &key, address, driver, agent_version, inventory: &inventory };
    let (identity, enrolled) = enrol(platform, token, &newcomer).await.map_err(Failure::server)?;
    home.enrolled(&identity, &key, &enrolled.keyring).map_err(Failure::usage)?;
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
