//! The heartbeat: what the engine shows right now and how it is, with a number that rises.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use futures::stream::{self, StreamExt};
use node_protocol::{Heartbeat, Usage, WorkloadReport, WorkloadState};
use tokio::time::timeout;

use crate::drivers::{Driver, DriverFault, Seen};
use crate::journal::Journal;
use crate::watch::Watch;

/// An engine measures a container within a second or two, or it does not.
const MEASURED_WITHIN: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;

/// A look at the engine, numbered after it was taken: a later number is never an earlier look, if looks take turns.
pub(crate) async fn heartbeat<D: Driver>(
    driver: &Arc<D>,
    watch: &Watch,
    journal: &Journal,
    agent_version: &str,
) -> Result<Heartbeat, DriverFault> {
    let seen = driver.seen().await?;
    let (health, usage) = join(watch.follow(driver, &seen), usage(&**driver, &seen)).await;
    let sequence = journal
        .next_report()
        .map_err(|fault| DriverFault::new(domain::StatusReason::Internal, fault.to_string()))?;
    let told = seen.into_iter().zip(health).zip(usage);
    let workloads: Vec<WorkloadReport> =
        told.map(|((seen, health), usage)| seen.report(health, usage)).collect();
    let driver = Some(driver.name().to_owned());
    Ok(Heartbeat { sequence, agent_version: agent_version.to_owned(), driver, workloads })
}

/// All at once, and none for long: that a node lives must not wait for one container that cannot be measured.
async fn usage<D: Driver>(driver: &D, seen: &[Seen]) -> Vec<Usage> {
    let asked: Vec<_> = seen.iter().map(|seen| measured(driver, seen)).collect();
    stream::iter(asked).buffered(AT_ONCE).collect().await
}

async fn measured<D: Driver>(driver: &D, seen: &Seen) -> Usage {
    match seen.state {
        WorkloadState::Running => timeout(MEASURED_WITHIN, driver.usage(seen)).await.unwrap_or_default(),
        WorkloadState::Created | WorkloadState::Restarting | WorkloadState::Exited => Usage::default(),
    }
}
