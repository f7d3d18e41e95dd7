//! Whatever the line between a node and the platform loses, the node goes on and nothing is done twice.

use std::time::Duration;

use agent::{Driver, Simulated};
use chrono::TimeDelta;
use engine::RunState;
use serde_json::json;

use crate::http::project;
use crate::instances::nodes::watch;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_goes_on_while_the_platform_is_away_for_longer_than_any_lease_or_token_lives() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    // A second launch is on its way when the line is cut; its result cannot be told.
    driver.will(agent::SimulatedFault::Hang);
    let (late, run) = platform.deploy_version(allocation, &number, 1).await;
    let out = "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";
    platform.story.until_true("the task is on its way", out, run, &["handed_out"]).await;
    // On its way it could still get lost. Its key, in the journal, begins with the run.
    while !std::fs::read_to_string(agent.folder.join("journal")).unwrap().contains(&run.to_string()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    platform.door.cut(true);
    driver.release(1);
    while driver.launches() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Past the lease of every task and process, past every token that the node has, and past the patience of the launch.
    platform.http.realm.clock.advance(TimeDelta::minutes(50));
    platform.story.advance(Duration::from_secs(50 * 60)).await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "node_unreachable");
    assert_eq!(driver.seen().await.unwrap().len(), 2, "what ran goes on");

    platform.door.cut(false);
    let back = "select status = 'active' and $2::text[] is not null from nodes where id = $1";
    platform.story.until_true("the node is back", back, agent.id, &[]).await;
    watch(&platform).await;
    assert_eq!(platform.instance(id).await["status"], "running");
    // The launch was given up meanwhile, and what came of it went; or it was heard of in time.
    let state = platform.story.ends(run).await;
    let left = if state == RunState::Succeeded { 2 } else { 1 };
    while driver.seen().await.unwrap().len() != left {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(driver.launches(), 2, "nothing was started twice");
    for id in [id, late] {
        platform.decommission(id).await;
        assert_eq!(platform.held(id).await, Vec::<String>::new());
    }
    assert_eq!(driver.seen().await.unwrap(), vec![]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_arrive_are_made_up_for_and_nothing_is_done_twice() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    // The node asks and is heard; what it is given is lost on the way.
    platform.door.lose_answers();
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    let out = "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";
    platform.story.until_true("the task was handed out", out, run, &["handed_out"]).await;
    assert_eq!(driver.launches(), 0, "and never arrived");
    platform.door.cut(false);
    platform.story.advance(Duration::from_secs(61)).await;
    platform.story.until_true("the launch is at work or done", out, run, &["succeeded"]).await;
    platform.succeeds(run).await;
    assert_eq!(driver.launches(), 1);
    // Its own answers are heard; that they were it does not learn, so it tells them again.
    platform.door.lose_answers();
    let run = id_of(
        &platform
            .http
            .acting("operator")
            .post(&project(&format!("/app-instances/{id}/decommission")), json!({}))
            .await
            .with(202)["workflow"],
    );
    platform.story.advance(Duration::from_secs(61)).await;
    platform.door.cut(false);
    platform.story.advance(Duration::from_secs(61)).await;
    platform.succeeds(run).await;
    assert_eq!(driver.seen().await.unwrap(), vec![]);
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}
