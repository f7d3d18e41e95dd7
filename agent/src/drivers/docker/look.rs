//! What the engine has of networks, and who is on them, at one look. A network that was made ahead belongs to the instance whose
//! containers name it, whether they run or not; one that no container names is in reserve. Nothing else says whose it is, so there
//! is no file that could be lost.

use bollard::models::{ContainerSummary, Network as Shown};
use domain::container::INSTANCE;
use futures::try_join;
use uuid::Uuid;

use super::{Docker, fault};
use crate::drivers::DriverFault;

/// The node that a network was made ahead for.
pub(super) const SPARE: &str = "gpuaas.spare";

pub(super) struct Look {
    pub(super) networks: Vec<Shown>,
    /// Everybody's: whoever is on a network, it is not for another.
    pub(super) containers: Vec<ContainerSummary>,
}

impl Docker {
    pub(super) async fn look(&self) -> Result<Look, DriverFault> {
        let networks = async {
            let all = self.client.list_networks(None).await;
            all.map_err(|error| fault("list the networks", &error))
        };
        let (networks, containers) = try_join!(networks, self.list_containers(None))?;
        Ok(Look { networks, containers })
    }
}

impl Look {
    /// Whose network it is, as far as the engine can tell.
    pub(super) fn owner(&self, network: &Shown) -> Option<Uuid> {
        let made_for = || label(network, INSTANCE)?.parse().ok();
        if is_spare(network) { self.on(network).find_map(instance) } else { made_for() }
    }

    /// Made ahead for this node, and nobody's yet.
    pub(super) fn in_reserve(&self, node: Uuid) -> impl Iterator<Item = &Shown> {
        let node = node.to_string();
        let of_node = move |network: &&Shown| label(network, SPARE) == Some(node.as_str());
        self.networks.iter().filter(of_node).filter(|network| self.on(network).next().is_none())
    }

    /// The instance's containers, whatever else their labels say.
    pub(super) fn containers_of(&self, of: Uuid) -> impl Iterator<Item = &ContainerSummary> {
        self.containers.iter().filter(move |container| instance(container) == Some(of))
    }

    /// By what they were made with, which stays when they stop; an engine may know it by name or by number.
    fn on(&self, network: &Shown) -> impl Iterator<Item = &ContainerSummary> {
        let is_this =
            |named: &String| network.name.as_ref() == Some(named) || network.id.as_ref() == Some(named);
        let named = |container: &ContainerSummary| container.host_config.as_ref()?.network_mode.clone();
        self.containers.iter().filter(move |container| named(container).as_ref().is_some_and(is_this))
    }
}

pub(super) fn is_spare(network: &Shown) -> bool {
    label(network, SPARE).is_some()
}

fn label<'a>(network: &'a Shown, name: &str) -> Option<&'a str> {
    network.labels.as_ref()?.get(name).map(String::as_str)
}

fn instance(container: &ContainerSummary) -> Option<Uuid> {
    container.labels.as_ref()?.get(INSTANCE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ContainerSummaryHostConfig;
    use std::collections::HashMap;

    const NODE: Uuid = Uuid::from_u128(1);
    const INSTANCE_ID: Uuid = Uuid::from_u128(2);

    fn labels(name: &str, value: Uuid) -> Option<HashMap<String, String>> {
        Some(HashMap::from([(name.to_owned(), value.to_string())]))
    }

    fn network(name: &str, kind: &str, whose: Uuid) -> Shown {
        let (name, id) = (Some(name.to_owned()), Some(format!("id of {name}")));
        Shown { name, id, labels: labels(kind, whose), ..Shown::default() }
    }

    fn container(names: &str, label: &str) -> ContainerSummary {
        let network_mode = Some(names.to_owned());
        ContainerSummary {
            labels: labels(label, INSTANCE_ID),
            host_config: Some(ContainerSummaryHostConfig { network_mode, ..Default::default() }),
            ..ContainerSummary::default()
        }
    }

    #[test]
    fn whose_a_network_is_its_label_says_or_the_containers_on_it() {
        let networks = vec![
            network("own", INSTANCE, Uuid::from_u128(3)),
            network("used", SPARE, NODE),
            network("known by its number", SPARE, NODE),
            network("free", SPARE, NODE),
            network("somebody's", SPARE, NODE),
            network("another node's", SPARE, Uuid::from_u128(4)),
        ];
        let named = [("used", INSTANCE), ("id of known by its number", INSTANCE), ("somebody's", "foreign")];
        let containers = named.map(|(named, label)| container(named, label)).to_vec();
        let look = Look { networks, containers };
        let owners: Vec<Option<Uuid>> = look.networks.iter().map(|one| look.owner(one)).collect();
        let (own, used) = (Some(Uuid::from_u128(3)), Some(INSTANCE_ID));
        assert_eq!(owners, [own, used, used, None, None, None]);
        let free: Vec<_> = look.in_reserve(NODE).filter_map(|one| one.name.as_deref()).collect();
        assert_eq!(free, ["free"], "what somebody is on is not free, and neither is what another node made");
        assert_eq!(look.containers_of(INSTANCE_ID).count(), 2);
    }
}
