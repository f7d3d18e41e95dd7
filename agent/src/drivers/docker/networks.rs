//! The networks of instances: one bridge each. Docker keeps bridges apart, so what is on one does not reach what is on another. An
//! instance of one container takes one that was made ahead, if there is any; a stack has one that Compose's own tools know.
//!
//! Only what this process made ahead is handed out. On what another left, a container that it asked for may still arrive: that is
//! taken away, and counted by nobody.

use std::collections::{HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use bollard::models::{Network as Shown, NetworkCreateRequest};
use domain::StatusReason;
use domain::container::INSTANCE;
use node_protocol::Workload;
use uuid::Uuid;

use super::look::{Look, SPARE, is_spare};
use super::{Docker, gone_is_well};
use crate::drivers::{DriverFault, Network};

/// The network that each instance's next container joins, by name. Until there is a container, only this says whose one from
/// the reserve is.
type Taken = HashMap<Uuid, String>;

/// What this process knows of networks and the engine does not.
#[derive(Debug, Default)]
pub(super) struct Known {
    taken: Taken,
    /// Made here and nobody's yet, by name. Whoever takes one takes its name out.
    reserve: HashSet<String>,
    /// Those in reserve that were to go, by name. Each is tried once: one that stays keeps no other from being made.
    discarded: HashSet<String>,
}

impl Known {
    /// How many are in reserve, and one that is to go, if any is: from here on nobody chooses it.
    fn counted(&mut self, look: &Look, node: Uuid, wanted: usize) -> (usize, Option<String>) {
        let free: Vec<&String> =
            free(look, &self.reserve, node).filter_map(|one| one.name.as_ref()).collect();
        let too_many = free.first().filter(|_| free.len() > wanted).map(|name| (*name).clone());
        let goes = self.stray(look, node).or(too_many);
        if let Some(name) = &goes {
            self.reserve.remove(name);
            self.discarded.insert(name.clone());
        }
        (free.len(), goes)
    }

    /// One that was made ahead and is nobody's, and that is not in reserve here.
    fn stray(&self, look: &Look, node: Uuid) -> Option<String> {
        let is_known = |name: &String| {
            self.reserve.contains(name)
                || self.discarded.contains(name)
                || self.taken.values().any(|taken| taken == name)
        };
        let mut names = look.in_reserve(node).filter_map(|network| network.name.clone());
        names.find(|name| !is_known(name))
    }
}

impl Docker {
    /// Docker lets two networks have one name, so the look comes first; tasks of one instance take turns.
    pub(super) async fn ensure_network(
        &self,
        node: Uuid,
        workload: &Workload,
    ) -> Result<Network, DriverFault> {
        let look = self.look().await?;
        if let Some(there) = self.take(&look, node, workload) {
            return addressed(there);
        }
        let instance = workload.instance_id;
        let name = Workload::network_name(instance);
        let labels = HashMap::from([
            (INSTANCE.to_owned(), instance.to_string()),
            ("com.docker.compose.project".to_owned(), name.clone()),
            ("com.docker.compose.network".to_owned(), "default".to_owned()),
        ]);
        self.create_in_pool(instance, bridge(name, labels)).await?;
        let look = self.look().await?;
        let made = look.networks.iter().find(|one| look.owner(one) == Some(instance) && !is_spare(one));
        let gone = || DriverFault::new(StatusReason::Internal, "a network that was just made is gone");
        addressed(made.ok_or_else(gone)?)
    }

    /// What the instance has, or else one in reserve; none where one must be made. Chosen and written down in one go: launches
    /// of other instances are under way.
    fn take<'a>(&self, look: &'a Look, node: Uuid, workload: &Workload) -> Option<&'a Shown> {
        let instance = workload.instance_id;
        let mut known = self.known();
        let own =
            owned(look, &known.taken).filter(|(whose, _)| *whose == instance).map(|(_, network)| network);
        let (spares, made): (Vec<_>, Vec<_>) = own.partition(|network| is_spare(network));
        let ahead = || spares.first().copied().or_else(|| free(look, &known.reserve, node).next());
        let alone = workload.stack.is_none();
        let found = made.first().copied().or_else(|| if alone { ahead() } else { None });
        let name = found.and_then(|network| network.name.clone());
        let name = name.unwrap_or_else(|| Workload::network_name(instance));
        known.reserve.remove(&name);
        known.taken.insert(instance, name);
        found
    }

    /// What the next container of an instance joins.
    pub(super) fn joined(&self, instance: Uuid) -> String {
        let joined = self.known().taken.get(&instance).cloned();
        joined.unwrap_or_else(|| Workload::network_name(instance))
    }

    /// Every network that is an instance's, and whose.
    pub(super) fn owned(&self, look: &Look) -> Vec<(Uuid, Shown)> {
        let known = self.known();
        owned(look, &known.taken).map(|(whose, network)| (whose, network.clone())).collect()
    }

    /// Those among them that were made ahead, by name.
    pub(super) fn spares_of(&self, look: &Look, instance: Uuid) -> Vec<String> {
        let own = self.owned(look).into_iter().filter(|(whose, one)| *whose == instance && is_spare(one));
        own.filter_map(|(_, network)| network.name).collect()
    }

    /// Whose it is although no container will say so any more.
    pub(super) fn keep(&self, instance: Uuid, network: &str) {
        self.known().taken.insert(instance, network.to_owned());
    }

    pub(super) fn forget(&self, instance: Uuid) {
        self.known().taken.remove(&instance);
    }

    /// One step towards so many in reserve. What another process left goes first.
    pub(super) async fn step_to_reserve(&self, node: Uuid, wanted: usize) -> Result<bool, DriverFault> {
        let look = self.look().await?;
        let (there, goes) = self.known().counted(&look, node, wanted);
        if let Some(name) = goes {
            gone_is_well(self.client.remove_network(&name).await, "remove a network in reserve")?;
            return Ok(false);
        }
        if there < wanted {
            self.add_to_reserve(node).await?;
        }
        Ok(there >= wanted)
    }

    /// Known as made here before the engine has it, so that no look takes it for another's.
    async fn add_to_reserve(&self, node: Uuid) -> Result<(), DriverFault> {
        let id = Uuid::now_v7();
        let name = format!("gpuaas-spare-{}", id.simple());
        let labels = HashMap::from([(SPARE.to_owned(), node.to_string())]);
        self.known().reserve.insert(name.clone());
        let made = self.create_in_pool(id, bridge(name.clone(), labels)).await;
        if made.is_err() {
            self.known().reserve.remove(&name);
        }
        made
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By what the engine says, or because a launch that has no container yet took it.
fn owned<'a>(look: &'a Look, taken: &Taken) -> impl Iterator<Item = (Uuid, &'a Shown)> {
    let taken_by = |network: &Shown| taken.iter().find(|(_, name)| network.name.as_ref() == Some(name));
    let owner = move |network| look.owner(network).or_else(|| taken_by(network).map(|(whose, _)| *whose));
    look.networks.iter().filter_map(move |network| Some((owner(network)?, network)))
}

/// In reserve by what this process knows now, and by what the engine said when it was looked at.
fn free<'a>(look: &'a Look, reserve: &HashSet<String>, node: Uuid) -> impl Iterator<Item = &'a Shown> {
    look.in_reserve(node).filter(|network| network.name.as_ref().is_some_and(|name| reserve.contains(name)))
}

fn bridge(name: String, labels: HashMap<String, String>) -> NetworkCreateRequest {
    let (driver, labels) = (Some("bridge".to_owned()), Some(labels));
    NetworkCreateRequest { name, driver, labels, ..Default::default() }
}

fn addressed(shown: &Shown) -> Result<Network, DriverFault> {
    let unread = || DriverFault::new(StatusReason::Internal, "the engine does not say where the network is");
    read(shown).ok_or_else(unread)
}

/// Where the node is on it.
pub(super) fn read(shown: &Shown) -> Option<Network> {
    let config = shown.ipam.as_ref()?.config.as_ref()?.first()?;
    Network::read(config.gateway.as_deref()?, config.subnet.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Uuid = Uuid::from_u128(1);

    /// These were made ahead, and no container is on any of them.
    fn look(names: &[&str]) -> Look {
        let labels = || Some(HashMap::from([(SPARE.to_owned(), NODE.to_string())]));
        let network =
            |name: &&str| Shown { name: Some((*name).to_owned()), labels: labels(), ..Shown::default() };
        Look { networks: names.iter().map(network).collect(), containers: Vec::new() }
    }

    fn made(names: &[&str]) -> Known {
        Known { reserve: names.iter().map(|name| (*name).to_owned()).collect(), ..Known::default() }
    }

    fn handed_out(known: &Known, look: &Look) -> usize {
        free(look, &known.reserve, NODE).count()
    }

    #[test]
    fn what_another_process_made_is_not_handed_out_and_goes_once() {
        let (look, mut known) = (look(&["ours", "another's"]), made(&["ours"]));
        assert_eq!(handed_out(&known, &look), 1);
        assert_eq!(known.counted(&look, NODE, 1), (1, Some("another's".to_owned())));
        assert_eq!(known.counted(&look, NODE, 1), (1, None), "one that stays is not tried again");
        assert_eq!(handed_out(&known, &look), 1);
    }

    #[test]
    fn what_is_to_go_is_not_handed_out_by_whoever_looked_before() {
        let (look, mut known) = (look(&["one"]), made(&["one"]));
        assert_eq!(known.counted(&look, NODE, 0), (1, Some("one".to_owned())));
        assert_eq!(handed_out(&known, &look), 0);
    }

    #[test]
    fn what_a_launch_took_stays_although_no_container_names_it_yet() {
        let (look, mut known) = (look(&["one"]), made(&[]));
        known.taken.insert(Uuid::from_u128(2), "one".to_owned());
        assert_eq!(known.counted(&look, NODE, 0), (0, None));
    }
}
