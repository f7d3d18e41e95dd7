//! How a workload reaches the platform: the agent listens on the node's address in the instance's own network and passes
//! on what is meant for the public API, and nothing else. Nobody gains a right by it: the workload proves itself with its
//! own key, and the relay answers only those who are on that network.

mod forward;
mod ration;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::StatusReason;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::net::TcpListener;
use tokio::sync::Mutex as Turn;
use tokio::task::JoinHandle;

use self::forward::Way;
use self::serve::serve;
use crate::drivers::{Driver, DriverFault, Network};
use crate::home::Identity;

/// The same on every network, because a workload keeps the address it was started with.
pub const PORT: u16 = 4780;

/// The platform has this long to be reached, and to go on with an answer that it began.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
const GOES_ON_WITHIN: Duration = Duration::from_secs(120);

pub(crate) struct Relay {
    platform: Url,
    issuer: String,
    client: Client,
    doors: Mutex<HashMap<Network, Door>>,
    /// A launch and a look at what is there may come upon one network together.
    opening: Turn<()>,
}

/// Somebody who listens.
struct Door(JoinHandle<()>);

impl Drop for Door {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Relay {
    pub(crate) fn new(identity: &Identity) -> Result<Relay, DriverFault> {
        let broken =
            |error: &dyn std::fmt::Display| DriverFault::new(StatusReason::Internal, error.to_string());
        let platform = Url::parse(&identity.platform).map_err(|error| broken(&error))?;
        let client = Client::builder().redirect(Policy::none()).no_proxy();
        let client = client.connect_timeout(REACHED_WITHIN).read_timeout(GOES_ON_WITHIN).build();
        let client = client.map_err(|error| broken(&error))?;
        let issuer = identity.issuer.clone();
        Ok(Relay { platform, issuer, client, doors: Mutex::default(), opening: Turn::default() })
    }

    /// Listens on the network, if it does not yet. Answers what a workload there must know.
    pub(crate) async fn open(&self, network: Network) -> Result<BTreeMap<String, String>, DriverFault> {
        let address = SocketAddr::new(network.gateway, PORT);
        let _turn = self.opening.lock().await;
        if !self.is_open(network) {
            let listener = TcpListener::bind(address).await.map_err(|error| {
                let message = format!("the relay cannot listen on {address}: {error}");
                DriverFault::new(StatusReason::PortUnavailable, message)
            })?;
            let way = Way::new(network, self.platform.clone(), self.client.clone());
            let serving = tokio::spawn(serve(listener, Arc::new(way)));
            self.doors().insert(network, Door(serving));
        }
        Ok(BTreeMap::from([
            ("GPUAAS_BASE_URL".to_owned(), format!("http://{address}")),
            ("GPUAAS_ISSUER".to_owned(), self.issuer.clone()),
        ]))
    }

    /// Listens on the networks that are there and on no others: after a restart workloads find their relay again.
    pub(crate) async fn follow<D: Driver>(&self, driver: &D) -> Result<(), DriverFault> {
        // A door that opens while the engine is asked is younger than its answer, and stays.
        let known: Vec<Network> = self.doors().keys().copied().collect();
        let there: Vec<Network> = driver.networks().await?.into_iter().map(|(_, network)| network).collect();
        self.doors().retain(|network, _| !known.contains(network) || there.contains(network));
        self.open_all(there).await
    }

    /// One that cannot be listened on keeps no other instance from the platform. Answers the first trouble.
    async fn open_all(&self, networks: Vec<Network>) -> Result<(), DriverFault> {
        let mut trouble = Ok(());
        for network in networks {
            trouble = trouble.and(self.open(network).await.map(drop));
        }
        trouble
    }

    fn is_open(&self, network: Network) -> bool {
        let mut doors = self.doors();
        doors.retain(|_, door| !door.0.is_finished());
        doors.contains_key(&network)
    }

    fn doors(&self) -> MutexGuard<'_, HashMap<Network, Door>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
