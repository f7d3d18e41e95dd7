//! The agent itself, in the process that its supervisor started or as a part of `gpuaas dev`. One at a time works in a folder.
//!
//! It hangs by its standard input. When that closes its supervisor has let it go or is dead, and it ends, so that the next one
//! does not find two.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use agent::{ADOPTED, Agent, Claim, Driver, Home, Now, REPORTED, Settings};
use clients::Clock;
use clients::clock::SystemClock;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{AnyDriver, Choice, DockerAt, resume};
use crate::cli::output;
use crate::failure::Failure;
use crate::stop::Stop;

/// How long whoever worked here before may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// How long this one may, once it was let go; then it is ended as it is.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

pub async fn run(
    home: Home,
    driver: Choice,
    docker: DockerAt<'_>,
    settings: Settings,
    trial: bool,
) -> Result<(), Failure> {
    let stop = Stop::on_signals().map_err(Failure::server)?.asked;
    let adopted = hang_by_stdin(stop.clone());
    let trial = trial.then_some(adopted);
    let enrolled = driver.enrolled(&home.identity().map_err(Failure::usage)?.driver)?;
    let driver = tokio::select! {
        driver = resume(enrolled, docker) => driver,
        () = stop.cancelled() => return Ok(()),
    };
    // By its true name: whether a program runs already is asked of where it is.
    let program = std::env::current_exe().and_then(std::fs::canonicalize).map_err(Failure::server)?;
    let settings = Settings { program: Some(program), ..settings };
    begin(home, driver, settings, trial, stop).await
}

/// As a part of this process: once it can work, it does what is asked until told to stop.
pub async fn serve(
    home: Home,
    driver: AnyDriver,
    stop: CancellationToken,
) -> Result<JoinHandle<()>, Failure> {
    match driver {
        AnyDriver::Docker(docker) => serve_by(home, docker, stop).await,
        AnyDriver::Simulated(simulated) => serve_by(home, simulated, stop).await,
    }
}

async fn serve_by<D: Driver>(
    home: Home,
    driver: D,
    stop: CancellationToken,
) -> Result<JoinHandle<()>, Failure> {
    let (alone, agent) = open(home, driver, usual()).await?;
    Ok(tokio::spawn(async move {
        let _alone = alone;
        agent.run(stop).await;
    }))
}

pub(super) fn usual() -> Settings {
    Settings::new(env!("CARGO_PKG_VERSION"))
}

async fn begin(
    home: Home,
    driver: AnyDriver,
    settings: Settings,
    trial: Option<CancellationToken>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    match driver {
        AnyDriver::Docker(docker) => life(home, docker, settings, trial, stop).await,
        AnyDriver::Simulated(simulated) => life(home, simulated, settings, trial, stop).await,
    }
}

async fn life<D: Driver>(
    home: Home,
    driver: D,
    settings: Settings,
    trial: Option<CancellationToken>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let (_alone, agent) = open(home, driver, settings).await?;
    if let Some(adopted) = trial {
        let proof = async {
            agent.until_heard().await;
            output::text(&format!("{REPORTED}\n"))?;
            adopted.cancelled().await;
            Ok::<(), Failure>(())
        };
        tokio::select! {
            proven = proof => proven?,
            () = stop.cancelled() => return Ok(()),
        }
    }
    agent.run(stop).await;
    Ok(())
}

async fn open<D: Driver>(home: Home, driver: D, settings: Settings) -> Result<(Claim, Agent<D>), Failure> {
    let alone = home.claim(ENDS_WITHIN).await.map_err(Failure::usage)?;
    let now: Now = Arc::new(|| SystemClock.now());
    let agent = Agent::open(home, driver, settings, now).map_err(Failure::usage)?;
    Ok((alone, agent))
}

/// Answers what is cancelled once this process is told to go on. On a thread of its own, which nobody waits for at the end.
fn hang_by_stdin(stop: CancellationToken) -> CancellationToken {
    let adopted = CancellationToken::new();
    let told = adopted.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if line == ADOPTED {
                told.cancel();
            }
        }
        stop.cancel();
        std::thread::sleep(LET_GO_WITHIN);
        std::process::exit(1);
    });
    adopted
}
