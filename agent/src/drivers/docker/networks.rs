//! The networks of instances: one bridge each. Docker keeps bridges apart, so what is on one does not reach what is on another. An
//! instance of one container takes one that was made ahead, if there is any; a stack has one that Compose's own tools know.

use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use bollard::models::{Network as Shown, NetworkCreateRequest};
use domain::StatusReason;
use domain::container::INSTANCE;
use node_protocol::Workload;
use uuid::Uuid;

use super::Docker;
use super::look::{Look, SPARE, is_spare};
use crate::drivers::{DriverFault, Network};

/// The network that each instance's next container joins, by name. Until there is a container, only this says whose one from
/// the reserve is.
pub(super) type Taken = HashMap<Uuid, String>;

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
        let mut taken = self.taken();
        let own = owned(look, &taken).filter(|(whose, _)| *whose == instance).map(|(_, network)| network);
        let (spares, made): (Vec<_>, Vec<_>) = own.partition(|network| is_spare(network));
        let ahead = || spares.first().copied().or_else(|| free(look, &taken, node).next());
        let alone = workload.stack.is_none();
        let found = made.first().copied().or_else(|| if alone { ahead() } else { None });
        let name = found.and_then(|network| network.name.clone());
        taken.insert(instance, name.unwrap_or_else(|| Workload::network_name(instance)));
        found
    }

    /// What the next container of an instance joins.
    pub(super) fn joined(&self, instance: Uuid) -> String {
        self.taken().get(&instance).cloned().unwrap_or_else(|| Workload::network_name(instance))
    }

    /// Every network that is an instance's, and whose.
    pub(super) fn owned(&self, look: &Look) -> Vec<(Uuid, Shown)> {
        owned(look, &self.taken()).map(|(whose, network)| (whose, network.clone())).collect()
    }

    /// Those among them that were made ahead, by name.
    pub(super) fn spares_of(&self, look: &Look, instance: Uuid) -> Vec<String> {
        let own = self.owned(look).into_iter().filter(|(whose, one)| *whose == instance && is_spare(one));
        own.filter_map(|(_, network)| network.name).collect()
    }

    pub(super) fn forget(&self, instance: Uuid) {
        self.taken().remove(&instance);
    }

    /// One step towards so many in reserve.
    pub(super) async fn step_to_reserve(&self, node: Uuid, wanted: usize) -> Result<bool, DriverFault> {
        let look = self.look().await?;
        let (there, too_many) = {
            let taken = self.taken();
            let free: Vec<&Shown> = free(&look, &taken, node).collect();
            (free.len(), free.first().filter(|_| free.len() > wanted).and_then(|one| one.name.clone()))
        };
        if let Some(name) = too_many {
            return self.take_from_reserve(name).await.map(|()| false);
        }
        if there < wanted {
            let made = Uuid::now_v7();
            let labels = HashMap::from([(SPARE.to_owned(), node.to_string())]);
            self.create_in_pool(made, bridge(format!("gpuaas-spare-{}", made.simple()), labels)).await?;
        }
        Ok(there >= wanted)
    }

    /// Taken as for an instance first, so that no launch chooses it meanwhile.
    async fn take_from_reserve(&self, name: String) -> Result<(), DriverFault> {
        let nobody = Uuid::now_v7();
        {
            let mut taken = self.taken();
            if taken.values().any(|other| *other == name) {
                return Ok(());
            }
            taken.insert(nobody, name.clone());
        }
        let gone = self.remove_spare(&name).await;
        self.forget(nobody);
        gone
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By what the engine says, or because a launch that has no container yet took it.
fn owned<'a>(look: &'a Look, taken: &Taken) -> impl Iterator<Item = (Uuid, &'a Shown)> {
    let taken_by = |network: &Shown| taken.iter().find(|(_, name)| network.name.as_ref() == Some(name));
    let owner = move |network| look.owner(network).or_else(|| taken_by(network).map(|(whose, _)| *whose));
    look.networks.iter().filter_map(move |network| Some((owner(network)?, network)))
}

/// In reserve, and not taken since the engine was looked at.
fn free<'a>(look: &'a Look, taken: &Taken, node: Uuid) -> impl Iterator<Item = &'a Shown> {
    look.in_reserve(node).filter(|network| !taken.values().any(|name| network.name.as_ref() == Some(name)))
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
