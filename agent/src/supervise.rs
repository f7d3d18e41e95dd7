//! The process around the agent. It starts the agent's program as a process of its own and again when it ends, tries another
//! when an update was staged, and returns to the old one where the new one does not report. It touches neither the platform nor
//! the engine, so there is little in it to go wrong or to be updated; workloads run on whatever becomes of either process.

mod trial;
mod worker;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::worker::Worker;
pub use self::worker::{ADOPTED, REPORTED};
use crate::home::{Claim, Home, HomeFault};
use crate::update::{Stage, Update};

/// A program that ends again and again is started again after a second, two, four, and then twice a minute.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Whoever ran for so long did not end again and again.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum SupervisorFault {
    #[error(transparent)]
    Home(#[from] HomeFault),
    #[error("{program} cannot be started: {error}")]
    Start { program: PathBuf, error: io::Error },
}

pub struct Supervisor {
    pub home: Home,
    /// There is one: [`Home::supervise`].
    pub alone: Claim,
    /// The program that is installed on this machine, and runs until one of a release has taken its place.
    pub installed: PathBuf,
    /// What the agent itself is started with.
    pub arguments: Vec<OsString>,
    /// What more it is told when it is tried.
    pub on_trial: OsString,
    /// How long another program may take until the platform has heard it.
    pub patience: Duration,
}

impl Supervisor {
    /// Until `stop`, which ends the agent too.
    pub async fn run(&self, stop: &CancellationToken) -> Result<(), SupervisorFault> {
        let mut pause = FIRST_PAUSE;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let worked = match self.home.update()? {
                Some(update) if update.stage == Stage::Staged => self.attempt(update, stop).await?,
                Some(update) if update.stage == Stage::Trying => self.settle(update)?,
                _ => self.work(stop).await?,
            };
            if !worked || stop.is_cancelled() || self.has_staged()? {
                continue;
            }
            pause = if began.elapsed() < LONG_ENOUGH { pause } else { FIRST_PAUSE };
            tracing::warn!(again_in = ?pause, "the agent ended by itself");
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// A trial that nobody saw the end of.
    fn settle(&self, update: Update) -> Result<bool, SupervisorFault> {
        let current = self.home.current(&self.installed)?;
        self.home.keep_update(&update.interrupted(current.as_ref()))?;
        self.home.keep_only(&current.iter().collect::<Vec<_>>());
        Ok(false)
    }

    /// The agent as it is, until it ends.
    async fn work(&self, stop: &CancellationToken) -> Result<bool, SupervisorFault> {
        let program = self.program()?;
        let started = match Worker::start(&program, &self.arguments) {
            Err(error) if program != self.installed => {
                tracing::error!(%error, program = %program.display(), "falling back to what is installed");
                Worker::start(&self.installed, &self.arguments)
            }
            started => started,
        };
        let mut worker = started.map_err(|error| SupervisorFault::Start { program, error })?;
        worker.until_it_ends(stop).await;
        Ok(true)
    }

    fn program(&self) -> Result<PathBuf, HomeFault> {
        let current = self.home.current(&self.installed)?;
        Ok(current.map_or_else(|| self.installed.clone(), |digest| self.home.program(&digest)))
    }

    /// Whether the agent ended because another program is to be tried.
    fn has_staged(&self) -> Result<bool, HomeFault> {
        Ok(self.home.update()?.is_some_and(|update| update.stage == Stage::Staged))
    }
}
