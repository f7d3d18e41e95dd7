//! Benchmarks. Each figure is measured beside a reference on the same server in the same run, because only the
//! ratio travels from one machine to another. `bench engine` measures the durable engine against its bars, `bench api`
//! the HTTP API, `bench catalog` the pages of a large catalog, `bench artifacts` blobs, intents and registry tokens, `bench
//! console` the console in a browser, `bench metering` usage from its taking to its price, `bench deploy` instances beside `docker run`
//! and a server with many nodes.

// Nobody depends on a binary: here `pub` only means "for the other files".
#![allow(unreachable_pub)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod api;
mod artifacts;
mod catalog;
mod console;
mod deploy;
mod failure;
mod load;
mod measure;
mod metering;
mod pgbench;
mod process;
mod report;
mod server;
mod worker;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::api::{ApiArgs, BareArgs};
use crate::artifacts::ArtifactsArgs;
use crate::catalog::CatalogArgs;
use crate::console::ConsoleArgs;
use crate::deploy::DeployArgs;
use crate::failure::Failure;
use crate::measure::EngineArgs;
use crate::metering::MeteringArgs;
use crate::worker::WorkerArgs;

#[derive(Debug, Parser)]
#[command(about = "Measures the platform against its bars")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The durable engine: throughput, latency, idle cost, recovery and history
    Engine(EngineArgs),
    /// The HTTP API: an authenticated read beside a bare route, and the judgement of tokens
    Api(ApiArgs),
    /// The catalog: pages of ten thousand apps, raw and as a project sees them
    Catalog(CatalogArgs),
    /// The console in a browser: its first load, the runs page over a long past, a run of many steps
    Console(ConsoleArgs),
    /// Artifacts: a large blob, publish intents and registry tokens
    Artifacts(ArtifactsArgs),
    /// Metering: usage beside a COPY of it, a large rollup, and reading what it came to
    Metering(MeteringArgs),
    /// Instances: what the platform adds to `docker run`, and one server with many nodes
    Deploy(DeployArgs),
    /// A process of its own that drives runs until it is killed
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// A process of its own with one bare route
    #[command(hide = true)]
    Bare(BareArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let worth_saying = Targets::new().with_default(LevelFilter::WARN).with_target("sqlx", LevelFilter::ERROR);
    let lines = fmt::layer().with_writer(std::io::stderr).with_filter(worth_saying);
    tracing_subscriber::registry().with(lines).init();
    match run(cli.bench).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            report::say(&format!("bench: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether every bar was met.
async fn run(bench: Bench) -> Result<bool, Failure> {
    match bench {
        // An interrupt ends like a failure, so that the server of our own is stopped and its folder removed.
        Bench::Engine(args) => tokio::select! {
            measured = Box::pin(measure::engine(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Api(args) => tokio::select! {
            measured = Box::pin(api::measure(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Bare(args) => api::bare(args).await,
        Bench::Catalog(args) => tokio::select! {
            measured = Box::pin(catalog::catalog(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Console(args) => tokio::select! {
            measured = Box::pin(console::console(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Artifacts(args) => tokio::select! {
            measured = Box::pin(artifacts::artifacts(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Metering(args) => tokio::select! {
            measured = Box::pin(metering::metering(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Deploy(args) => tokio::select! {
            measured = Box::pin(deploy::deploy(&args)) => measured,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        },
        Bench::Worker(args) => worker::run(&args).await,
    }
}
