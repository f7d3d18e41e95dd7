//! `agent.self_update`: the program of a release is had and verified here; then this process ends, and whoever started it tries
//! the new program and goes on with this one if the new one does not report (`supervise.rs`). The task stays unanswered until
//! then: whoever is the agent afterwards answers it from the record.
//!
//! That the program is meant for this node is not asked of the bytes. The task that names their digest was signed by a signer
//! of the node's keyring, and [`Envelope::open`](node_protocol::Envelope::open) believed it before anything came here; who
//! signed the release was judged by the platform when it was asked for.

mod fetch;
mod record;

pub(crate) use record::{Stage, Update};

use std::path::PathBuf;

use domain::StatusReason;
use node_protocol::{Envelope, Outcome, Output, SelfUpdate, program_for};
use tokio::sync::Mutex as Turn;
use tokio_util::sync::CancellationToken;

use crate::drivers::{DriverFault, Told};
use crate::home::{Home, HomeFault};
use crate::inventory::machine;
use crate::platform::Platform;

pub(crate) struct Updater {
    home: Home,
    /// The program that runs, where a supervisor can start another.
    program: Option<PathBuf>,
    /// One update at a time.
    turn: Turn<()>,
    staged: CancellationToken,
}

impl Updater {
    pub(crate) fn new(home: Home, program: Option<PathBuf>) -> Updater {
        Updater { home, program, turn: Turn::default(), staged: CancellationToken::new() }
    }

    /// Resolves once there is another program to try, and this one has to end for it.
    pub(crate) async fn staged(&self) {
        self.staged.cancelled().await;
    }

    /// The key and the answer of the last update that was decided.
    pub(crate) fn decided(&self) -> Result<Option<(String, Outcome)>, HomeFault> {
        let update = self.home.update()?;
        Ok(update.and_then(|update| update.outcome().map(|outcome| (update.key, outcome))))
    }

    /// Answers at once where nothing is to be tried; otherwise it never does, because this process ends.
    pub(crate) async fn update(
        &self,
        platform: &Platform,
        task: &Envelope,
        wanted: &SelfUpdate,
        told: &Told,
    ) -> Outcome {
        let _turn = self.turn.lock().await;
        let fault = match self.stage(platform, task, wanted, told).await {
            Ok(None) => {
                tracing::info!(version = wanted.version, "another program is to be tried; this one ends");
                self.staged.cancel();
                return std::future::pending().await;
            }
            Ok(Some(outcome)) => return outcome,
            Err(fault) => fault,
        };
        Outcome::Failed { reason: fault.reason, message: fault.message }
    }

    /// `None` once the program is there and written down to be tried.
    async fn stage(
        &self,
        platform: &Platform,
        task: &Envelope,
        wanted: &SelfUpdate,
        told: &Told,
    ) -> Result<Option<Outcome>, DriverFault> {
        let rejected = |why: String| DriverFault::new(StatusReason::TaskRejected, why);
        let program = self.program.as_ref().ok_or_else(|| {
            rejected(
                "this agent is part of another process, such as gpuaas dev, and is updated with it".into(),
            )
        })?;
        let own = program_for(Some(&machine()));
        if wanted.artifact != own {
            return Err(rejected(format!(
                "{} does not run on this machine, which needs {own}",
                wanted.artifact
            )));
        }
        let unkept = |fault: HomeFault| DriverFault::new(StatusReason::Internal, fault.to_string());
        // An earlier life may have got further than its journal tells.
        if let Some((_, outcome)) =
            self.decided().map_err(unkept)?.filter(|(key, _)| *key == task.idempotency_key)
        {
            return Ok(Some(outcome));
        }
        let version = wanted.version.clone();
        // What is being run is there, and what is not there is not being run.
        let kept = std::fs::canonicalize(self.home.program(&wanted.digest)).ok();
        if kept.is_some_and(|kept| kept == *program) {
            return Ok(Some(Outcome::Succeeded { output: Output::Updated { version } }));
        }
        fetch::fetch(&self.home, platform, wanted, told).await?;
        let (key, program) = (task.idempotency_key.clone(), wanted.digest.clone());
        let update = Update { key, version, program, stage: Stage::Staged };
        self.home.keep_update(&update).map_err(unkept)?;
        Ok(None)
    }
}
