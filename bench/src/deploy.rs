//! `bench deploy`: what the platform adds to `docker run`, from the call that creates an instance to the moment it runs; and
//! one server with a thousand nodes that beat, wait for tasks and take them, then with ten thousand.

mod nodes;
mod overhead;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::measure::environment;
use crate::report::{Report, show};
use crate::server::Server;

#[derive(Debug, Args)]
pub struct DeployArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// Where the container engine listens
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    docker_host: String,
    /// The image of hello as an OCI layout; where `./dev pack` puts it unless said otherwise
    #[arg(long, value_name = "DIR")]
    hello_image: Option<PathBuf>,
    /// Few rounds and few nodes, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Size {
    deploys: usize,
    nodes: usize,
    many_nodes: usize,
    time: Duration,
}

const FULL: Size = Size { deploys: 30, nodes: 1_000, many_nodes: 10_000, time: Duration::from_secs(60) };
const QUICK: Size = Size { deploys: 3, nodes: 50, many_nodes: 100, time: Duration::from_secs(12) };

pub async fn deploy(args: &DeployArgs) -> Result<bool, Failure> {
    let size = if args.quick { QUICK } else { FULL };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let mut report = Report::default();
    report.add(overhead::measure(&args.docker_host, &image(args)?, size.deploys).await?);
    report.add(nodes::measure(&server, nodes::Fleet::held(size.nodes), size.time).await?);
    report.add(nodes::measure(&server, nodes::Fleet::told(size.many_nodes), size.time).await?);
    show(&report.table());
    if !args.quick {
        let environment = environment(&server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/deploy.json"), &environment)?;
    }
    Ok(report.all_met())
}

fn image(args: &DeployArgs) -> Result<PathBuf, Failure> {
    if let Some(named) = &args.hello_image {
        return Ok(named.clone());
    }
    let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
    let packed = program.parent().and_then(Path::parent).map(|target| target.join("apps/hello"));
    let missing = || Failure::Setup("hello is not packed: ./dev bench deploy packs it".into());
    packed.filter(|layout| layout.join("index.json").exists()).ok_or_else(missing)
}
