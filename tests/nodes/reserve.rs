//! Networks in reserve, on a real engine: an instance takes one that was made ahead, nobody else ever gets it, and whoever looks at
//! the containers knows whose it is.

use std::time::Duration;

use agent::{Docker, Driver, Network, SPARE_NETWORKS, Told};
use node_protocol::{ControlAction, Generations, Outcome, Output, Secrets, Workload};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::agent::{Line, launch, removal};
use crate::support::agent::RunningAgent;
use crate::support::docker::Engine;

const NODE: Uuid = Uuid::from_u128(7);

/// An agent's driver that has just been started: it remembers nothing.
async fn started(engine: &Engine) -> Docker {
    Docker::connect(&engine.host()).await.unwrap()
}

async fn stocked(driver: &Docker, wanted: usize) {
    while !driver.stock(NODE, wanted).await.unwrap() {}
}

/// A new instance, launched with its first generation.
async fn launched(driver: &Docker, engine: &Engine) -> Workload {
    let workload = engine.stage.workload(Uuid::now_v7(), 1);
    launched_as(driver, &workload).await;
    workload
}

async fn launched_as(driver: &Docker, workload: &Workload) -> Network {
    let network = driver.network(NODE, workload).await.unwrap().expect("a network");
    let (told, _) = Told::new(CancellationToken::new());
    driver.launch(workload, &Secrets::default(), &told).await.unwrap();
    network
}

async fn removed(driver: &Docker, workload: &Workload) -> Vec<String> {
    driver.remove(workload.instance_id, Generations::UpTo(9), true).await.unwrap()
}

/// The network that its container is on, by name.
fn network_of(engine: &Engine, workload: &Workload) -> String {
    let format = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}";
    engine.docker(&["inspect", "--format", format, &workload.container_name()]).unwrap()
}

fn is_there(engine: &Engine, network: &str) -> bool {
    engine.docker(&["network", "inspect", network]).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn launches_at_once_take_networks_of_their_own_and_an_agent_that_starts_anew_knows_whose_they_are() {
    let engine = Engine::start().await;
    let driver = started(&engine).await;
    stocked(&driver, 2).await;
    let reserve = engine.reserve();
    let (one, other) = tokio::join!(launched(&driver, &engine), launched(&driver, &engine));
    let mut taken = [&one, &other].map(|workload| network_of(&engine, workload));
    taken.sort();
    assert_eq!(taken.as_slice(), reserve, "both were taken, and each once");
    let third = launched(&driver, &engine).await;
    let made = Workload::network_name(third.instance_id);
    assert_eq!(network_of(&engine, &third), made, "where nothing is in reserve one is made");

    let anew = started(&engine).await;
    stocked(&anew, 1).await;
    let fourth = launched(&anew, &engine).await;
    assert!(!taken.contains(&network_of(&engine, &fourth)), "what is somebody's is not handed out");
    for workload in [&one, &other, &third, &fourth] {
        let known = driver.network(NODE, workload).await.unwrap().unwrap();
        assert_eq!(anew.network(NODE, workload).await.unwrap(), Some(known));
        assert!(anew.networks().await.unwrap().contains(&(workload.instance_id, known)));
        let leftovers = anew.leftovers(workload.instance_id).await.unwrap();
        assert_eq!(leftovers, [network_of(&engine, workload)]);
    }
    let next = engine.stage.workload(one.instance_id, 2);
    launched_as(&anew, &next).await;
    assert_eq!(network_of(&engine, &next), network_of(&engine, &one), "one instance, one network");
    for workload in [&one, &other, &third, &fourth] {
        let network = network_of(&engine, workload);
        let gone = removed(&anew, workload).await;
        assert!(gone.contains(&network) && gone.contains(&workload.container_name()), "{gone:?}");
    }
    assert_eq!((engine.leftovers(), engine.reserve()), (vec![], vec![]));
}

/// Wherever a removal is cut short, and by whomever it is finished.
#[tokio::test(flavor = "multi_thread")]
async fn what_served_an_instance_is_never_in_reserve_again() {
    let engine = Engine::start().await;
    let driver = started(&engine).await;
    stocked(&driver, 1).await;
    let served = launched(&driver, &engine).await;
    let network = network_of(&engine, &served);
    driver.control(served.instance_id, 1, ControlAction::Stop).await.unwrap();
    let anew = started(&engine).await;
    assert_eq!(engine.reserve(), Vec::<String>::new(), "a container that stands still names it");
    let other = launched(&anew, &engine).await;
    assert_ne!(network_of(&engine, &other), network);
    engine.docker(&["network", "rm", &network]).unwrap();
    assert_eq!(removed(&anew, &served).await, [served.container_name()], "what is gone already is well");

    // The first of two generations leaves it to the second, and the last one takes it along, for good or not.
    stocked(&anew, 1).await;
    let first = launched(&anew, &engine).await;
    let second = engine.stage.workload(first.instance_id, 2);
    launched_as(&anew, &second).await;
    let network = network_of(&engine, &second);
    let (first_name, second_name) = (first.container_name(), second.container_name());
    let gone = anew.remove(first.instance_id, Generations::Only(1), false).await.unwrap();
    assert_eq!((gone, is_there(&engine, &network)), (vec![first_name], true));
    let gone = anew.remove(first.instance_id, Generations::Only(2), false).await.unwrap();
    assert_eq!((gone, is_there(&engine, &network)), (vec![second_name, network.clone()], false));

    // Without a container it is known to whoever took it.
    stocked(&anew, 1).await;
    let reserve = engine.reserve();
    let pending = engine.stage.workload(Uuid::now_v7(), 1);
    let taken = anew.network(NODE, &pending).await.unwrap();
    assert_eq!(anew.network(NODE, &pending).await.unwrap(), taken);
    assert!(anew.networks().await.unwrap().contains(&(pending.instance_id, taken.unwrap())));
    assert_eq!(anew.leftovers(pending.instance_id).await.unwrap(), reserve);
    assert_eq!(removed(&anew, &pending).await, reserve, "its launch failed before there was a container");
    removed(&anew, &other).await;
    assert_eq!(engine.leftovers(), Vec::<String>::new());
}

/// A container that the one before asked for may still arrive on what it took, and would be there with somebody else's.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_left_that_was_killed_is_nobodys_and_goes_before_another_is_made() {
    let engine = Engine::start().await;
    let killed = started(&engine).await;
    stocked(&killed, 3).await;
    let served = launched(&killed, &engine).await;
    let used = network_of(&engine, &served);
    killed.network(NODE, &engine.stage.workload(Uuid::now_v7(), 1)).await.unwrap();
    let left = engine.reserve();
    assert_eq!(left.len(), 2, "one that it took for a launch, and one that it did not: {left:?}");

    let anew = started(&engine).await;
    let next = launched(&anew, &engine).await;
    let made = Workload::network_name(next.instance_id);
    assert_eq!(network_of(&engine, &next), made, "what was found is not handed out");
    stocked(&anew, 2).await;
    let reserve = engine.reserve();
    assert!(reserve.len() == 2 && !reserve.iter().any(|one| left.contains(one)), "{reserve:?}");
    assert!(is_there(&engine, &used), "what a container names is its instance's");
    let third = launched(&anew, &engine).await;
    assert!(reserve.contains(&network_of(&engine, &third)));
    stocked(&anew, 0).await;
    for workload in [&served, &next, &third] {
        removed(&anew, workload).await;
    }
    assert_eq!((engine.leftovers(), engine.reserve()), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_on_the_network_of_an_instance_keeps_it_and_nothing_else() {
    let engine = Engine::start().await;
    let driver = started(&engine).await;
    stocked(&driver, 1).await;
    let served = launched(&driver, &engine).await;
    let (network, container) = (network_of(&engine, &served), served.container_name());
    let image = engine.stage.digest.as_str();
    engine.docker(&["run", "--detach", "--name", "guest", "--network", &network, image]).unwrap();
    driver.remove(served.instance_id, Generations::UpTo(9), true).await.unwrap_err();
    assert!(engine.docker(&["inspect", &container]).is_err(), "its containers go all the same");
    assert_eq!(driver.leftovers(served.instance_id).await.unwrap(), std::slice::from_ref(&network));
    stocked(&driver, 1).await;
    assert!(is_there(&engine, &network) && !engine.reserve().contains(&network), "nor is it in reserve");
    engine.docker(&["rm", "--force", "guest"]).unwrap();
    assert_eq!(removed(&driver, &served).await, [network], "once the guest has gone so does it");
    stocked(&driver, 0).await;
    assert_eq!((engine.leftovers(), engine.reserve()), (vec![], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserve_is_what_the_engine_has_now_and_each_node_has_its_own() {
    let engine = Engine::start().await;
    let driver = started(&engine).await;
    stocked(&driver, 2).await;
    engine.docker(&["network", "prune", "--force"]).unwrap();
    let workload = launched(&driver, &engine).await;
    assert_eq!(network_of(&engine, &workload), Workload::network_name(workload.instance_id));

    stocked(&driver, 2).await;
    let reserve = engine.reserve();
    let foreign = engine.stage.workload(Uuid::now_v7(), 1);
    driver.network(Uuid::from_u128(8), &foreign).await.unwrap();
    let foreign_network = Workload::network_name(foreign.instance_id);
    assert!(is_there(&engine, &foreign_network), "another node's are not for it to take");
    assert!(driver.stock(Uuid::from_u128(8), 0).await.unwrap());
    assert_eq!(engine.reserve(), reserve, "nor to take away");

    let mut stack = engine.stage.workload(Uuid::now_v7(), 1);
    stack.stack = Some("hash".to_owned());
    launched_as(&driver, &stack).await;
    let of_compose = Workload::network_name(stack.instance_id);
    assert_eq!(network_of(&engine, &stack), of_compose, "a stack's network is known to Compose");
    let project = engine.docker(&[
        "network",
        "inspect",
        "--format",
        r#"{{index .Labels "com.docker.compose.project"}}"#,
        &of_compose,
    ]);
    assert_eq!((project.unwrap(), engine.reserve()), (of_compose, reserve));

    stocked(&driver, 0).await;
    assert_eq!(engine.reserve(), Vec::<String>::new(), "too many are taken away");
    let alone = launched(&driver, &engine).await;
    assert_eq!(network_of(&engine, &alone), Workload::network_name(alone.instance_id), "none is as it was");
    for workload in [&workload, &foreign, &stack, &alone] {
        removed(&driver, workload).await;
    }
    assert_eq!(engine.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_keeps_networks_in_reserve_and_leaves_none_when_it_stops() {
    let engine = Engine::start().await;
    let line = Line::new().await;
    let driver = started(&engine).await;
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    let first = full(&engine, &[]).await;
    let instance = Uuid::now_v7();
    let outcome = line.done(agent.id, &launch(&engine.stage, instance, 1), 1).await;
    assert!(matches!(outcome, Outcome::Succeeded { output: Output::Launched { .. } }), "{outcome:?}");
    let network = network_of(&engine, &engine.stage.workload(instance, 1));
    assert!(first.contains(&network), "{network}");

    let second = full(&engine, &[]).await;
    assert!(!second.contains(&network), "another takes its place");
    let folder = agent.kill().await;
    assert_eq!(engine.reserve(), second, "killed, it leaves them");
    let agent = RunningAgent::again(&line.http, folder, &started(&engine).await);
    let outcome = line.done(agent.id, &launch(&engine.stage, Uuid::now_v7(), 1), 1).await;
    assert!(matches!(outcome, Outcome::Succeeded { .. }), "{outcome:?}");
    full(&engine, &second).await;
    let outcome = line.done(agent.id, &removal(instance, 2), 2).await;
    assert!(matches!(outcome, Outcome::Succeeded { .. }) && !is_there(&engine, &network), "{outcome:?}");
    agent.end().await;
    assert_eq!(engine.reserve(), Vec::<String>::new());
    assert_eq!(engine.leftovers().len(), 2, "what runs goes on: {:?}", engine.leftovers());
    line.end().await;
}

/// Waits until as many are in reserve as an agent keeps, none of these among them.
async fn full(engine: &Engine, without: &[String]) -> Vec<String> {
    loop {
        let reserve = engine.reserve();
        assert!(reserve.len() <= SPARE_NETWORKS, "{reserve:?}");
        if reserve.len() == SPARE_NETWORKS && !reserve.iter().any(|network| without.contains(network)) {
            return reserve;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
