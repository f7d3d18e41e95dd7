//! The heartbeat: what the engine shows right now, with a number that rises.

use node_protocol::{Health, Heartbeat, WorkloadReport, WorkloadState};

use crate::drivers::{Driver, DriverFault, Seen};
use crate::journal::Journal;

/// A look at the engine, numbered after it was taken: a later number is never an earlier look.
pub(crate) async fn heartbeat<D: Driver>(
    driver: &D,
    journal: &Journal,
    agent_version: &str,
) -> Result<Heartbeat, DriverFault> {
    let seen = driver.seen().await?;
    let sequence = journal
        .next_report()
        .map_err(|fault| DriverFault::new(domain::StatusReason::Internal, fault.to_string()))?;
    let workloads: Vec<WorkloadReport> = seen.into_iter().map(told).collect();
    let driver = Some(driver.name().to_owned());
    Ok(Heartbeat { sequence, agent_version: agent_version.to_owned(), driver, workloads })
}

fn told(seen: Seen) -> WorkloadReport {
    let health = match seen.state {
        WorkloadState::Running | WorkloadState::Created => Health::Unknown,
        WorkloadState::Exited => Health::Unhealthy,
    };
    seen.report(health)
}
