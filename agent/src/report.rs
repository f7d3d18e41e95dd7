//! The heartbeat: what the engine shows right now and how it is, with a number that rises.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use futures::stream::{self, StreamExt};
use node_protocol::{GpuUse, Heartbeat, Usage, WorkloadReport, WorkloadState};
use tokio::time::timeout;

use crate::drivers::{Driver, DriverFault, Seen};
use crate::journal::Journal;
use crate::watch::Watch;

/// An engine measures a container within a second or two, or it does not.
const MEASURED_WITHIN: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;

/// What was last measured. To measure takes an engine its time, so it is done apart from the report, which others may be
/// waiting for.
#[derive(Default)]
pub(crate) struct Meter {
    last: Mutex<Measured>,
}

#[derive(Default)]
struct Measured {
    /// By the container's name.
    workloads: HashMap<String, Usage>,
    gpus: Vec<GpuUse>,
}

impl Meter {
    /// All at once, and none for long: that a node lives must not wait for one container that cannot be measured.
    pub(crate) async fn measure<D: Driver>(&self, driver: &D) -> Result<(), DriverFault> {
        let seen = driver.seen().await?;
        let asked: Vec<_> = seen.iter().map(|seen| measured(driver, seen)).collect();
        let usage = stream::iter(asked).buffered(AT_ONCE).collect::<Vec<Usage>>();
        let gpus = async { timeout(MEASURED_WITHIN, driver.gpu_use()).await.unwrap_or_default() };
        let (usage, gpus) = join(usage, gpus).await;
        let workloads = seen.into_iter().map(|seen| seen.name).zip(usage).collect();
        *self.last() = Measured { workloads, gpus };
        Ok(())
    }

    fn last(&self) -> MutexGuard<'_, Measured> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look at the engine, numbered after it was taken: a later number is never an earlier look, if looks take turns.
pub(crate) async fn heartbeat<D: Driver>(
    driver: &Arc<D>,
    watch: &Watch,
    meter: &Meter,
    journal: &Journal,
    agent_version: &str,
) -> Result<Heartbeat, DriverFault> {
    let seen = driver.seen().await?;
    let health = watch.follow(driver, &seen).await;
    let sequence = journal
        .next_report()
        .map_err(|fault| DriverFault::new(domain::StatusReason::Internal, fault.to_string()))?;
    let last = meter.last();
    let tell = |(seen, health): (Seen, _)| {
        // Nothing yet of what came since.
        let usage = last.workloads.get(&seen.name).copied().unwrap_or_default();
        seen.report(health, usage)
    };
    let workloads: Vec<WorkloadReport> = seen.into_iter().zip(health).map(tell).collect();
    Ok(Heartbeat {
        sequence,
        agent_version: agent_version.to_owned(),
        driver: Some(driver.name().to_owned()),
        workloads,
        gpus: last.gpus.clone(),
        keyring_version: None,
        address: None,
        asks_for_images: false,
    })
}

async fn measured<D: Driver>(driver: &D, seen: &Seen) -> Usage {
    match seen.state {
        WorkloadState::Running => timeout(MEASURED_WITHIN, driver.usage(seen)).await.unwrap_or_default(),
        WorkloadState::Created | WorkloadState::Restarting | WorkloadState::Exited => Usage::default(),
    }
}
