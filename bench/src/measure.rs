//! `bench engine`: the measurements of the durable engine in order, their table, their record, and whether every bar
//! was met. Throughput comes first, because the memory it reports is the process's largest so far.

mod history;
mod idle;
mod latency;
mod recovery;
mod throughput;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::pgbench::Reference;
use crate::report::{Report, say, show};
use crate::server::Server;

#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// Small rounds, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
    /// Only these measurements; nothing is recorded
    #[arg(long, value_delimiter = ',')]
    only: Vec<What>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Throughput,
    Latency,
    Idle,
    Recovery,
    History,
}

/// Runs that are kept unfinished under load.
const IN_FLIGHT: usize = 1000;
/// How long a measurement waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub rounds: u64,
    pub runs_per_round: u64,
    pub latency_runs: usize,
    pub idle: Duration,
    pub history_runs: u64,
    pub reads: usize,
    pub reference: Duration,
}

impl Size {
    const FULL: Size = Size {
        rounds: 5,
        runs_per_round: 10_000,
        latency_runs: 300,
        idle: Duration::from_secs(60),
        history_runs: 100_000,
        reads: 200,
        reference: Duration::from_secs(2),
    };
    const QUICK: Size = Size {
        rounds: 2,
        runs_per_round: 2_000,
        latency_runs: 100,
        idle: Duration::from_secs(10),
        history_runs: 10_000,
        reads: 100,
        reference: Duration::from_secs(1),
    };
}

/// What every measurement needs.
pub struct Bench {
    pub server: Server,
    pub reference: Reference,
    pub size: Size,
}

pub async fn engine(args: &EngineArgs) -> Result<bool, Failure> {
    let size = if args.quick { Size::QUICK } else { Size::FULL };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let reference = Reference::new(&server.database("reference").await?, size.reference).await?;
    let bench = Bench { server, reference, size };
    let mut report = Report::default();
    for what in What::value_variants() {
        if !args.only.is_empty() && !args.only.contains(what) {
            continue;
        }
        say(&format!("measuring {what:?}…"));
        report.add(match what {
            What::Throughput => throughput::measure(&bench).await?,
            What::Latency => latency::measure(&bench).await?,
            What::Idle => idle::measure(&bench).await?,
            What::Recovery => recovery::measure(&bench).await?,
            What::History => history::measure(&bench).await?,
        });
    }
    show(&report.table());
    if !args.quick && args.only.is_empty() {
        let environment = environment(&bench.server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/engine.json"), &environment)?;
    }
    Ok(report.all_met())
}

/// What the figures depend on.
pub async fn environment(server: &Server) -> Result<BTreeMap<&'static str, Value>, Failure> {
    let mut conn = server.admin().await?;
    let mut facts = BTreeMap::new();
    for setting in [
        "server_version",
        "shared_buffers",
        "max_wal_size",
        "data_checksums",
        "fsync",
        "full_page_writes",
        "synchronous_commit",
    ] {
        let value = sqlx::query_scalar!(r#"select current_setting($1) as "value!""#, setting)
            .fetch_one(&mut conn)
            .await?;
        facts.insert(setting, json!(value));
    }
    facts.insert("cores", json!(std::thread::available_parallelism().map_or(0, usize::from)));
    facts.insert("profile", json!(if cfg!(debug_assertions) { "debug" } else { "release" }));
    Ok(facts)
}

/// Asks again and again, often enough that the answer's time is right to a few hundredths of a second.
async fn until(what: &str, mut there: impl AsyncFnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let began = Instant::now();
    while !there().await? {
        if began.elapsed() > PATIENCE {
            return Err(Failure::Patience(what.to_owned()));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
