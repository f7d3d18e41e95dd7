//! The networks of instances: one bridge each, known by its label. Docker keeps bridges apart, so what is on one does not
//! reach what is on another.

use std::collections::HashMap;

use bollard::models::{Network as Shown, NetworkCreateRequest};
use bollard::query_parameters::ListNetworksOptionsBuilder;
use domain::StatusReason;
use domain::container::INSTANCE;
use node_protocol::Workload;
use uuid::Uuid;

use super::{Docker, fault};
use crate::drivers::{DriverFault, Network};

impl Docker {
    pub(super) async fn labelled(&self, instance: Option<Uuid>) -> Result<Vec<Shown>, DriverFault> {
        let label = instance.map_or_else(|| INSTANCE.to_owned(), |instance| format!("{INSTANCE}={instance}"));
        let filters = HashMap::from([("label", vec![label.as_str()])]);
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        self.client.list_networks(Some(options)).await.map_err(|error| fault("list the networks", &error))
    }

    /// Docker lets two networks have one name, so the look comes first; tasks of one instance take turns.
    pub(super) async fn ensure_network(&self, instance: Uuid) -> Result<Network, DriverFault> {
        if let Some(there) = self.labelled(Some(instance)).await?.first() {
            return addressed(there);
        }
        let name = Workload::network_name(instance);
        let labels = HashMap::from([
            (INSTANCE.to_owned(), instance.to_string()),
            ("com.docker.compose.project".to_owned(), name.clone()),
            ("com.docker.compose.network".to_owned(), "default".to_owned()),
        ]);
        let request = NetworkCreateRequest {
            name,
            driver: Some("bridge".to_owned()),
            labels: Some(labels),
            ..Default::default()
        };
        self.create_in_pool(instance, request).await?;
        let made = self.labelled(Some(instance)).await?;
        let gone = || DriverFault::new(StatusReason::Internal, "a network that was just made is gone");
        addressed(made.first().ok_or_else(gone)?)
    }
}

fn addressed(shown: &Shown) -> Result<Network, DriverFault> {
    let unread = || DriverFault::new(StatusReason::Internal, "the engine does not say where the network is");
    read(shown).map(|(_, network)| network).ok_or_else(unread)
}

/// Whose network it is, and where the node is on it.
pub(super) fn read(shown: &Shown) -> Option<(Uuid, Network)> {
    let instance = shown.labels.as_ref()?.get(INSTANCE)?.parse().ok()?;
    let config = shown.ipam.as_ref()?.config.as_ref()?.first()?;
    Some((instance, Network::read(config.gateway.as_deref()?, config.subnet.as_deref()?)?))
}
