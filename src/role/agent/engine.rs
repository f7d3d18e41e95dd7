//! Which driver runs the containers: Docker where an engine answers, and else none, which is said.

use agent::{Docker, Driver, Simulated};
use clap::ValueEnum;

use crate::failure::Failure;

const USUAL: &str = "unix:///var/run/docker.sock";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Docker where an engine answers, else simulated
    #[default]
    Auto,
    Docker,
    /// No container is ever started
    Simulated,
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

pub async fn choose(choice: Choice, docker_host: Option<&str>) -> Result<AnyDriver, Failure> {
    if choice == Choice::Simulated {
        return Ok(AnyDriver::Simulated(Simulated::new()));
    }
    let host = docker_host.unwrap_or(USUAL);
    match (Docker::connect(host).await, choice) {
        (Ok(docker), _) => Ok(AnyDriver::Docker(docker)),
        (Err(fault), Choice::Docker) => {
            Err(Failure::server(format!("no container engine at {host}: {fault}")))
        }
        (Err(_), _) => Ok(AnyDriver::Simulated(Simulated::new())),
    }
}
