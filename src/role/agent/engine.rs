//! Which driver runs the containers. A machine that enrols takes Docker where an engine answers, and else none, which is said.
//! From then on it is what it enrolled with: an engine that does not answer yet, as at boot, is waited for.

use std::time::Duration;

use agent::{Docker, Driver, DriverFault, Simulated, Subnet};
use clap::ValueEnum;
use tokio::time::sleep;

use crate::failure::Failure;

const USUAL: &str = "unix:///var/run/docker.sock";

/// How often an engine that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// What this machine enrolled with; when it enrols, Docker where an engine answers, else simulated
    #[default]
    Auto,
    Docker,
    /// No container is ever started
    Simulated,
}

impl Choice {
    /// What a machine that enrolled with this driver may be started with.
    pub fn enrolled(self, driver: &str) -> Result<Choice, Failure> {
        let was = if driver == "simulated" { Choice::Simulated } else { Choice::Docker };
        if self == Choice::Auto || self == was {
            return Ok(was);
        }
        Err(Failure::usage(format!(
            "this machine enrolled with the driver {driver}: enrol it anew to use another"
        )))
    }
}

/// Where the container engine is, and where the networks of instances are to be.
#[derive(Debug, Clone, Copy)]
pub struct DockerAt<'a> {
    pub host: Option<&'a str>,
    pub pool: Subnet,
}

pub enum AnyDriver {
    Docker(Docker),
    Simulated(Simulated),
}

impl AnyDriver {
    pub fn name(&self) -> &'static str {
        match self {
            AnyDriver::Docker(docker) => docker.name(),
            AnyDriver::Simulated(simulated) => simulated.name(),
        }
    }
}

pub async fn choose(choice: Choice, docker: DockerAt<'_>) -> Result<AnyDriver, Failure> {
    if choice == Choice::Simulated {
        return Ok(AnyDriver::Simulated(Simulated::new()));
    }
    match (connect(docker).await, choice) {
        (Ok(docker), _) => Ok(AnyDriver::Docker(docker)),
        (Err(fault), Choice::Docker) => {
            let host = docker.host.unwrap_or(USUAL);
            Err(Failure::server(format!("no container engine at {host}: {fault}")))
        }
        (Err(_), _) => Ok(AnyDriver::Simulated(Simulated::new())),
    }
}

/// What the machine enrolled with. Falling back to less would hide from the platform everything that runs here.
pub async fn resume(enrolled: Choice, docker: DockerAt<'_>) -> AnyDriver {
    if enrolled == Choice::Simulated {
        return AnyDriver::Simulated(Simulated::new());
    }
    let mut told = false;
    loop {
        match connect(docker).await {
            Ok(docker) => return AnyDriver::Docker(docker),
            Err(fault) if !told => {
                tracing::warn!(%fault, "the container engine does not answer yet; waiting for it");
                told = true;
            }
            Err(_) => {}
        }
        sleep(AGAIN).await;
    }
}

async fn connect(docker: DockerAt<'_>) -> Result<Docker, DriverFault> {
    Ok(Docker::connect(docker.host.unwrap_or(USUAL)).await?.with_pool(docker.pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_stays_with_the_driver_it_enrolled_with() {
        assert_eq!(Choice::Auto.enrolled("docker").ok(), Some(Choice::Docker));
        assert_eq!(Choice::Auto.enrolled("simulated").ok(), Some(Choice::Simulated));
        assert!(
            Choice::Simulated.enrolled("docker").is_err() && Choice::Docker.enrolled("simulated").is_err()
        );
    }
}
