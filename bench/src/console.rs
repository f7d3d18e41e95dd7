//! `bench console`: what a browser needs before somebody can work. The first load in bytes, the runs page over a long
//! past, and the scrolling of a run of many steps, measured in Debian's Chromium on the server as it is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use sqlx::ConnectOptions;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::api::binary;
use crate::failure::Failure;
use crate::measure::environment;
use crate::report::{Bar, Figure, Report, median, percentile, say, show};
use crate::server::{Database, Server, execute};

#[derive(Debug, Args)]
pub struct ConsoleArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// A short past and few visits, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

const STEPS_PER_RUN: u64 = 10;
const LONG_RUN: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(60);

/// What the browser saw.
#[derive(Debug, Deserialize)]
struct Seen {
    /// Everything that the first visit fetches, as it came over the wire.
    first_load_bytes: f64,
    /// Milliseconds from the beginning of each visit until a key moves through the rows.
    interactive: Vec<f64>,
    /// Milliseconds from the beginning of each visit until the steps are drawn.
    long_run_drawn: Vec<f64>,
    /// Milliseconds between two pictures while the long run is scrolled.
    frames: Vec<f64>,
    /// The same of a page that is only as many lines of words.
    bare_frames: Vec<f64>,
    /// Milliseconds of everything that held the page for more than fifty, meanwhile.
    long_tasks: Vec<f64>,
}

pub async fn console(args: &ConsoleArgs) -> Result<bool, Failure> {
    let (runs, visits) = if args.quick { (1_000, 3) } else { (100_000, 20) };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let database = server.database("console").await?;
    fill(&database, runs).await?;
    let platform = Platform::start(&database).await?;
    let seen = look(&platform, visits).await?;
    let mut report = Report::default();
    report.add(figures(&seen, runs * STEPS_PER_RUN));
    show(&report.table());
    if !args.quick {
        let environment = environment(&server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/console.json"), &environment)?;
    }
    platform.stop().await?;
    server.drop(database).await?;
    Ok(report.all_met())
}

async fn fill(database: &Database, runs: u64) -> Result<(), Failure> {
    say(&format!("console: writing {runs} runs and one of {LONG_RUN} steps…"));
    let mut conn = database.pool.acquire().await?;
    execute(&mut conn, format!("set bench.runs = {runs}")).await?;
    execute(&mut conn, include_str!("../queries/history.sql").into()).await?;
    execute(&mut conn, format!("set bench.steps = {LONG_RUN}")).await?;
    execute(&mut conn, include_str!("../queries/long_run.sql").into()).await?;
    execute(&mut conn, "vacuum analyze".into()).await?;
    execute(&mut conn, "checkpoint".into()).await
}

/// `gpuaas dev` on the filled database: its people can sign in.
struct Platform {
    child: Child,
    folder: PathBuf,
}

impl Platform {
    async fn start(database: &Database) -> Result<Platform, Failure> {
        let folder = std::env::temp_dir().join(format!("gpuaas-bench-console-{}", Uuid::new_v4().simple()));
        fs::create_dir(&folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let log = fs::File::create(folder.join("log")).map_err(Failure::io("write the server's log"))?;
        let child = Command::new(binary()?)
            .args(["dev", "--port", "0", "--data-dir"])
            .arg(folder.join("data"))
            .arg("--ready-file")
            .arg(folder.join("ready.json"))
            .args(["--database-url", database.options.to_url_lossy().as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::io("start gpuaas dev"))?;
        let platform = Platform { child, folder };
        let began = Instant::now();
        while !platform.ready_file().exists() {
            if began.elapsed() > PATIENCE {
                let said = fs::read_to_string(platform.folder.join("log")).unwrap_or_default();
                return Err(Failure::Program { program: "gpuaas dev".into(), said });
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(platform)
    }

    fn ready_file(&self) -> PathBuf {
        self.folder.join("ready.json")
    }

    async fn stop(mut self) -> Result<(), Failure> {
        if let Some(pid) = self.child.id() {
            let interrupted = Command::new("kill").args(["-INT", &pid.to_string()]).status().await;
            interrupted.map_err(Failure::io("stop gpuaas dev"))?;
        }
        self.child.wait().await.map_err(Failure::io("wait for gpuaas dev"))?;
        Ok(())
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The browser is driven by the script that knows how people sign in.
async fn look(platform: &Platform, visits: u32) -> Result<Seen, Failure> {
    say(&format!("console: {visits} visits…"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/browser/speed.mjs");
    let output = Command::new("node")
        .arg(script)
        .env("GPUAAS_READY_FILE", platform.ready_file())
        .env("VISITS", visits.to_string())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(Failure::io("run node"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Program { program: "speed.mjs".into(), said });
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::Setup(error.to_string()))
}

fn figures(seen: &Seen, steps: u64) -> Vec<Figure> {
    let visits = seen.interactive.len();
    let longest = seen.long_tasks.iter().copied().fold(0.0, f64::max);
    vec![
        Figure {
            name: "first load",
            value: seen.first_load_bytes / 1000.0,
            unit: "kB",
            bar: Bar::AtMost(250.0),
            beside: "page, script, style and fonts, as they came over the wire".into(),
        },
        Figure {
            name: "runs page interactive",
            value: percentile(&seen.interactive, 95.0),
            unit: "ms",
            bar: Bar::AtMost(1000.0),
            beside: format!(
                "p95 of {visits} visits at {steps} steps of history, median {:.0} ms",
                median(&seen.interactive)
            ),
        },
        Figure {
            name: "long run drawn",
            value: percentile(&seen.long_run_drawn, 95.0),
            unit: "ms",
            bar: Bar::AtMost(1000.0),
            beside: format!("p95 of {visits} visits to {LONG_RUN} steps"),
        },
        Figure {
            name: "frame while scrolling p95",
            value: percentile(&seen.frames, 95.0),
            unit: "ms",
            bar: Bar::AtMost(20.0),
            beside: format!(
                "{} frames of {LONG_RUN} steps that still tick, median {:.0} ms; of as many bare lines p95 {:.0} ms, median {:.0} ms",
                seen.frames.len(),
                median(&seen.frames),
                percentile(&seen.bare_frames, 95.0),
                median(&seen.bare_frames)
            ),
        },
        Figure {
            name: "long tasks while scrolling",
            value: seen.long_tasks.len() as f64,
            unit: "tasks",
            bar: Bar::AtMost(0.0),
            beside: format!("over 50 ms; the longest took {longest:.0} ms"),
        },
    ]
}
