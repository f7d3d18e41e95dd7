//! Taking an instance's containers away, and its network with the last of them. One that was made ahead goes while the containers
//! that name it are still there: wherever this is cut short, either they say whose it is or it is gone. Only where the engine does not
//! let go of it they go first; cut short there it is nobody's, and whoever comes next takes it away. It is never in reserve again.

use std::time::Duration;

use bollard::errors::Error;
use bollard::models::NetworkDisconnectRequest;
use bollard::query_parameters::{RemoveContainerOptionsBuilder, StopContainerOptionsBuilder};
use node_protocol::Generations;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::look::is_spare;
use super::{Docker, STOP_SECONDS, disk, gone_is_well, scratch, seen, status};
use crate::drivers::{DriverFault, Seen};

/// An engine says that a container has stopped a moment before it has let go of its network.
const LETS_GO_WITHIN: Duration = Duration::from_secs(5);

impl Docker {
    pub(super) async fn take_away(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> Result<Vec<String>, DriverFault> {
        let look = self.look().await?;
        let all: Vec<_> = look.containers_of(instance).collect();
        let meant = all.iter().filter_map(|container| seen(container));
        let meant: Vec<Seen> = meant.filter(|seen| generations.contain(seen.generation)).collect();
        for Seen { name, .. } in &meant {
            self.stop(name).await?;
        }
        let with_network = for_good || meant.len() == all.len();
        let spares = if with_network { self.spares_of(&look, instance) } else { Vec::new() };
        let mut held = Vec::new();
        for name in &spares {
            if !self.lets_go_of(name).await? {
                self.keep(instance, name);
                held.push(name);
            }
        }
        let mut gone = Vec::new();
        for Seen { name, .. } in &meant {
            self.discard(name).await?;
            gone.push(name.clone());
        }
        for name in held {
            self.wrest(name, &meant).await?;
        }
        if with_network {
            self.forget(instance);
        }
        let swept = scratch::sweep(instance, generations, for_good);
        gone.extend(swept.map_err(|error| disk("remove the container's files", &error))?);
        gone.extend(spares);
        if for_good {
            let own =
                self.owned(&look).into_iter().filter(|(whose, one)| *whose == instance && !is_spare(one));
            for name in own.filter_map(|(_, network)| network.name) {
                gone_is_well(self.client.remove_network(&name).await, "remove the network")?;
                gone.push(name);
            }
            gone.extend(self.remove_volumes(instance).await?);
        }
        Ok(gone)
    }

    /// Removes a network. False where somebody is still on it, by what the engine says.
    async fn lets_go_of(&self, network: &str) -> Result<bool, DriverFault> {
        let deadline = Instant::now() + LETS_GO_WITHIN;
        loop {
            match self.client.remove_network(network).await {
                Err(error) if is_in_use(&error) && Instant::now() < deadline => {
                    sleep(Duration::from_millis(20)).await;
                }
                Err(error) if is_in_use(&error) => return Ok(false),
                done => return gone_is_well(done, "remove the network").map(|()| true),
            }
        }
    }

    /// Removes a network that the engine takes for these containers' although they are gone. What somebody else put there stays, and
    /// so does the network.
    async fn wrest(&self, network: &str, from: &[Seen]) -> Result<(), DriverFault> {
        for Seen { name, .. } in from {
            let request = NetworkDisconnectRequest { container: name.clone(), force: Some(true) };
            // An engine complains of whoever is not on it, as most are not.
            let _ = self.client.disconnect_network(network, request).await;
        }
        gone_is_well(self.client.remove_network(network).await, "remove the network")
    }

    async fn stop(&self, name: &str) -> Result<(), DriverFault> {
        let stop = StopContainerOptionsBuilder::default().t(STOP_SECONDS).build();
        gone_is_well(self.client.stop_container(name, Some(stop)).await, "stop the container")
    }

    async fn discard(&self, name: &str) -> Result<(), DriverFault> {
        let remove = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        gone_is_well(self.client.remove_container(name, Some(remove)).await, "remove the container")?;
        scratch::remove(name).map_err(|error| disk("remove the container's files", &error))
    }
}

fn is_in_use(error: &Error) -> bool {
    status(error) == Some(403)
}
