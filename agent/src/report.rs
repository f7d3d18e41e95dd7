//! The heartbeat: what the engine shows right now and how it is, with a number that rises.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use node_protocol::{Heartbeat, Usage, WorkloadReport, WorkloadState};
use tokio::time::timeout;

use crate::drivers::{Driver, DriverFault, Seen};
use crate::journal::Journal;
use crate::watch::Watch;

/// An engine measures a container within a second or two, or it does not.
const MEASURED_WITHIN: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;

/// What workloads were last seen to use, by the container's name. To measure takes an engine its time, so it is done apart
/// from the report, which others may be waiting for.
#[derive(Default)]
pub(crate) struct Meter {
    last: Mutex<HashMap<String, Usage>>,
}

impl Meter {
    /// All at once, and none for long: that a node lives must not wait for one container that cannot be measured.
    pub(crate) async fn measure<D: Driver>(&self, driver: &D) -> Result<(), DriverFault> {
        let seen = driver.seen().await?;
        let asked: Vec<_> = seen.iter().map(|seen| measured(driver, seen)).collect();
        let usage: Vec<Usage> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        *self.last() = seen.into_iter().map(|seen| seen.name).zip(usage).collect();
        Ok(())
    }

    /// Nothing yet of what came since.
    fn of(&self, seen: &Seen) -> Usage {
        self.last().get(&seen.name).copied().unwrap_or_default()
    }

    fn last(&self) -> MutexGuard<'_, HashMap<String, Usage>> {
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
    let tell = |(seen, health): (Seen, _)| {
        let usage = meter.of(&seen);
        seen.report(health, usage)
    };
    let workloads: Vec<WorkloadReport> = seen.into_iter().zip(health).map(tell).collect();
    let driver = Some(driver.name().to_owned());
    Ok(Heartbeat { sequence, agent_version: agent_version.to_owned(), driver, workloads })
}

async fn measured<D: Driver>(driver: &D, seen: &Seen) -> Usage {
    match seen.state {
        WorkloadState::Running => timeout(MEASURED_WITHIN, driver.usage(seen)).await.unwrap_or_default(),
        WorkloadState::Created | WorkloadState::Restarting | WorkloadState::Exited => Usage::default(),
    }
}
