//! What every driver promises, as one call from its tests: a name is one container, what is there is seen, what goes is
//! named, and nothing of another instance is ever touched.

use std::collections::BTreeMap;

use node_protocol::{
    ControlAction, Generations, Image, Launched, Port, Resources, Secrets, Workload, WorkloadState,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::drivers::{Driver, Seen, Told};

/// An image that is on the node already and serves on a port until it is stopped.
pub struct Stage {
    pub digest: String,
    pub port: u16,
}

/// The node that it is all for.
const NODE: Uuid = Uuid::from_u128(1);

/// Panics, naming the promise, if the driver breaks one: with nothing in reserve, and with less than is needed.
pub async fn hold_to_contract<D: Driver>(driver: &D, stage: &Stage) {
    for reserve in [0, 1] {
        stocked(driver, reserve).await;
        promises(driver, stage).await;
    }
    stocked(driver, 0).await;
}

async fn stocked<D: Driver>(driver: &D, wanted: usize) {
    while !driver.stock(NODE, wanted).await.unwrap_or_else(|fault| panic!("stocking {wanted}: {fault}")) {}
}

async fn promises<D: Driver>(driver: &D, stage: &Stage) {
    let (instance, neighbour) = (Uuid::now_v7(), Uuid::now_v7());
    let first = stage.workload(instance, 1);
    let network = driver.network(NODE, &first).await;
    assert_eq!(network, driver.network(NODE, &first).await, "one instance, one network");
    let launched = stage.launch(driver, instance, 1).await;
    let again = stage.launch(driver, instance, 1).await;
    assert_eq!(launched, again, "a second launch of one name finds the first");
    assert!(launched.ports.get("http").is_some_and(|port| *port > 0), "a port is told: {launched:?}");
    stage.launch(driver, instance, 2).await;
    stage.launch(driver, neighbour, 1).await;
    heard(driver, instance).await;
    assert_eq!(generations(driver, instance).await, [1, 2], "two generations stand side by side");

    let stop = driver.control(instance, 1, ControlAction::Stop).await;
    assert!(stop.is_ok(), "stopping: {stop:?}");
    assert_eq!(
        state(driver, instance, 1).await,
        Some(WorkloadState::Exited),
        "what was stopped is seen stopped"
    );
    assert_eq!(state(driver, instance, 2).await, Some(WorkloadState::Running), "and nothing else is");
    let restart = driver.control(instance, 1, ControlAction::Start).await;
    assert!(restart.is_ok(), "starting: {restart:?}");
    assert!(driver.control(Uuid::now_v7(), 1, ControlAction::Stop).await.is_err(), "nothing is not stopped");

    let gone = removed(driver, instance, Generations::Only(2), false).await;
    assert_eq!(gone, [format!("gpuaas-{instance}-main-g2")], "what goes is named");
    assert_eq!(generations(driver, instance).await, [1], "only what was meant went");
    let gone = removed(driver, instance, Generations::UpTo(5), true).await;
    assert!(gone.len() == 2 && gone[0] == first.container_name(), "its network goes for good: {gone:?}");
    assert!(generations(driver, instance).await.is_empty(), "nothing is left");
    assert_eq!(driver.leftovers(instance).await, Ok(vec![]), "no network is left");
    let networks = driver.networks().await.unwrap_or_else(|fault| panic!("looking at networks: {fault}"));
    assert!(networks.iter().all(|(of, _)| *of != instance), "and none is told of: {networks:?}");
    assert_eq!(
        removed(driver, instance, Generations::UpTo(5), true).await,
        Vec::<String>::new(),
        "twice is well"
    );

    assert_eq!(generations(driver, neighbour).await, [1], "a neighbour is never touched");
    removed(driver, neighbour, Generations::UpTo(1), true).await;
}

impl Stage {
    pub fn workload(&self, instance: Uuid, generation: i64) -> Workload {
        Workload {
            instance_id: instance,
            member: Workload::MAIN.to_owned(),
            generation,
            correlation_id: "c-contract".to_owned(),
            image: Image { registry: None, repository: "stage".to_owned(), digest: self.digest.clone() },
            command: None,
            env: BTreeMap::new(),
            ports: vec![Port { name: "http".to_owned(), container: self.port, host: 0 }],
            resources: Resources { gpu_count: 0, cpu_cores: 1, memory_gib: 1, pids: 64 },
            read_only_root: true,
            files: BTreeMap::new(),
            scratch: Vec::new(),
            shared_memory_gib: None,
            gpus: Vec::new(),
            probe: None,
            stack: None,
        }
    }

    async fn launch<D: Driver>(&self, driver: &D, instance: Uuid, generation: i64) -> Launched {
        let (told, _) = Told::new(CancellationToken::new());
        let workload = self.workload(instance, generation);
        let network = driver.network(NODE, &workload).await;
        assert!(network.is_ok(), "making the network: {network:?}");
        let launched = driver.launch(&workload, &Secrets::default(), &told).await;
        launched.unwrap_or_else(|fault| panic!("launching generation {generation}: {fault}"))
    }
}

async fn removed<D: Driver>(driver: &D, instance: Uuid, which: Generations, for_good: bool) -> Vec<String> {
    let removed = driver.remove(instance, which, for_good).await;
    removed.unwrap_or_else(|fault| panic!("removing {which:?}: {fault}"))
}

/// What a member wrote is heard, within bounds, and what was heard already is left out.
async fn heard<D: Driver>(driver: &D, instance: Uuid) {
    let lines = loop {
        let told = driver.logs(instance, Workload::MAIN, 10, None).await;
        let (lines, _) = told.unwrap_or_else(|fault| panic!("reading the log: {fault}")).into_parts();
        // A container that was started may not have spoken yet.
        if !lines.is_empty() {
            break lines;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(lines.windows(2).all(|pair| pair[0].at <= pair[1].at), "the oldest comes first: {lines:?}");
    let count = async |instance, lines, since| {
        driver.logs(instance, Workload::MAIN, lines, since).await.map_or(0, |told| told.into_parts().0.len())
    };
    assert_eq!(count(instance, 1, None).await, 1, "no more lines than were asked for");
    let last = lines.last().map(|line| line.at);
    assert_eq!(count(instance, 10, last).await, 0, "what was heard is left out");
    assert_eq!(count(Uuid::now_v7(), 10, None).await, 0, "nobody says nothing");
}

async fn of<D: Driver>(driver: &D, instance: Uuid) -> Vec<Seen> {
    let seen = driver.seen().await.unwrap_or_else(|fault| panic!("looking: {fault}"));
    seen.into_iter().filter(|seen| seen.instance_id == instance).collect()
}

async fn generations<D: Driver>(driver: &D, instance: Uuid) -> Vec<i64> {
    let mut generations: Vec<i64> = of(driver, instance).await.iter().map(|seen| seen.generation).collect();
    generations.sort_unstable();
    generations
}

async fn state<D: Driver>(driver: &D, instance: Uuid, generation: i64) -> Option<WorkloadState> {
    of(driver, instance).await.into_iter().find(|seen| seen.generation == generation).map(|seen| seen.state)
}
