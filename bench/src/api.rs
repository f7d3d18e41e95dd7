//! `bench api`: what the platform adds to a bare axum route, and what judging a token costs.
//!
//! The server is `gpuaas serve` as it is shipped, in a process of its own; beside it runs a process that answers the same
//! bytes without looking at the request. Both are asked by the same client over as many connections, in turns.

mod ask;
mod bare;
mod platform;
mod read;
mod verify;

pub use ask::{Line, Target};
pub use bare::{BareArgs, run as bare};
pub use platform::{Platform, binary, settle};
pub use read::answered;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::report::{Report, say, show};
use crate::server::Server;

#[derive(Debug, Args)]
pub struct ApiArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// Small rounds, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    rounds: usize,
    round: Duration,
    connections: usize,
    verifications: usize,
}

const FULL: Size = Size { rounds: 9, round: Duration::from_secs(3), connections: 32, verifications: 20_000 };
const QUICK: Size =
    Size { rounds: 3, round: Duration::from_millis(500), connections: 32, verifications: 1_000 };

pub async fn measure(args: &ApiArgs) -> Result<bool, Failure> {
    let size = if args.quick { QUICK } else { FULL };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let database = server.database("api").await?;
    let mut report = Report::default();
    say("measuring reads…");
    report.add(read::measure(&database, size).await?);
    say("measuring the judgement of tokens…");
    report.add(verify::measure(size.verifications).await?);
    server.drop(database).await?;
    show(&report.table());
    if !args.quick {
        let environment = BTreeMap::from([
            ("cores", json!(std::thread::available_parallelism().map_or(0, usize::from))),
            ("connections", json!(size.connections)),
            ("profile", json!(if cfg!(debug_assertions) { "debug" } else { "release" })),
        ]);
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/api.json"), &environment)?;
    }
    Ok(report.all_met())
}

/// An address nobody listens on yet. Somebody else could take it first; then the start fails and says so.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map_err(Failure::io("find a free port"))
}
