//! A machine that boots: its agent may start before its engine answers, and must not take that for an empty machine.

use crate::support::docker::PORT;
use crate::support::fleet::{Fleet, Victim, status};
use crate::support::platform::profile;

const REPORTED: &str = "select driver = 'docker' and report_sequence >= ($2::text[])[1]::bigint and
    jsonb_array_length(report -> 'workloads') = 1 from nodes where id = $1";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_starts_before_its_engine_waits_for_it_and_finds_what_was_there() {
    let mut fleet = Fleet::start().await;
    let image = fleet.engine.stage.digest.clone();
    let number = fleet.platform.real_version(&fleet.engine, &image, &profile(PORT, 30)).await;
    let allocation = fleet.allocates(2).await;
    let (id, run) = fleet.platform.deploy_version(allocation, &number, 0).await;
    fleet.platform.succeeds(run).await;
    let containers = fleet.containers(id);
    fleet.kill(Victim::Agent);
    fleet.kill(Victim::Engine);
    let (node, told): (uuid::Uuid, i64) = sqlx::query_as("select id, report_sequence from nodes")
        .fetch_one(&fleet.platform.story.pool)
        .await
        .unwrap();
    fleet.start_again(Victim::Agent).await;
    fleet.until_said("agent", "the container engine does not answer yet").await;
    fleet.start_again(Victim::Engine).await;
    let later = (told + 2).to_string();
    fleet.platform.story.until_true("the node reports what it has", REPORTED, node, &[&later]).await;
    assert_eq!(fleet.containers(id), containers, "nothing was started in its place");
    assert_eq!(status(&fleet.platform, id).await, "running");
    fleet.platform.decommission(id).await;
    assert_eq!(fleet.engine.leftovers(), Vec::<String>::new());
    fleet.end().await;
}
