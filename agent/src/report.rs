//! The heartbeat: what the engine shows right now and how it is, with a number that rises.

use std::sync::Arc;

use node_protocol::{Heartbeat, WorkloadReport};

use crate::drivers::{Driver, DriverFault};
use crate::journal::Journal;
use crate::watch::Watch;

/// A look at the engine, numbered after it was taken: a later number is never an earlier look, if looks take turns.
pub(crate) async fn heartbeat<D: Driver>(
    driver: &Arc<D>,
    watch: &Watch,
    journal: &Journal,
    agent_version: &str,
) -> Result<Heartbeat, DriverFault> {
    let seen = driver.seen().await?;
    let health = watch.follow(driver, &seen).await;
    let sequence = journal
        .next_report()
        .map_err(|fault| DriverFault::new(domain::StatusReason::Internal, fault.to_string()))?;
    let workloads: Vec<WorkloadReport> =
        seen.into_iter().zip(health).map(|(seen, health)| seen.report(health)).collect();
    let driver = Some(driver.name().to_owned());
    Ok(Heartbeat { sequence, agent_version: agent_version.to_owned(), driver, workloads })
}
