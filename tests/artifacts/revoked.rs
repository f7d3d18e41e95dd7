//! Revoked bytes are not used again, whatever they are called: under no version, inside no index, by no run in flight.

use agent::{Driver, Simulated, SimulatedFault};
use domain::ErrorCode;
use engine::RunState;
use serde_json::{Value, json};

use super::yard::Yard;
use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::image::{INDEX, Image, MANIFEST, digest};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

#[tokio::test(flavor = "multi_thread")]
async fn every_registration_of_revoked_bytes_is_revoked_and_none_is_taken_again() {
    let yard = Yard::new().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let first = yard.publish(&image).await;
    yard.intent(json!({ "app_version": "1.1.0" })).await;
    let second = yard.register(&image, json!({ "app_version": "1.1.0" })).await.with(201);
    let holder = yard.push(&other).await;
    let entry = |image: &Image| json!({ "mediaType": MANIFEST, "digest": image.digest, "size": image.manifest.len() });
    let index =
        json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(&image), entry(&other)] });
    let index = index.to_string().into_bytes();
    holder.push_manifest("index", INDEX, &index).await.unwrap();
    let of_index = json!({ "digest": digest(&index) });
    let whole = yard.register(&image, of_index.clone()).await.with(201);
    let living = yard.register(&other, json!({})).await.with(201);

    yard.act("project-admin", &first, "revoke", json!({ "reason": "leaked" })).await.with(200);
    for revoked in [&first, &second, &whole] {
        assert_eq!(yard.shown(revoked).await["trust_state"], "revoked");
    }
    assert_eq!(yard.shown(&living).await["trust_state"], "unverified", "other bytes are as they were");
    let told: i64 = sqlx::query_scalar(
        "select count(*) from audit where action = 'revoke_artifact' and reason = 'leaked'",
    )
    .fetch_one(&yard.story.pool)
    .await
    .unwrap();
    assert_eq!(told, 3, "each is told of");
    assert_eq!(yard.events().await.iter().filter(|kind| kind.ends_with("revoked")).count(), 3);

    yard.intent(json!({ "app_version": "1.2.0" })).await;
    for more in
        [json!({ "app_version": "1.2.0" }), json!({ "app_version": "1.2.0", "digest": digest(&index) })]
    {
        let refused = yard.register(&image, more).await.with(422);
        assert_eq!(refused["code"], ErrorCode::ArtifactUntrusted.as_str(), "{refused:#}");
    }
    yard.end().await;
}

/// Revokes the artifact of a version.
async fn revoke_version(platform: &Platform, number: &str) -> Value {
    let digest = shelve(number).to_string();
    let found = platform.http.get(&project(&format!("/app-artifacts?digest={digest}"))).await.with(200);
    let path = project(&format!("/app-artifacts/{}/revoke", id_of(&found["items"][0])));
    platform.http.acting("project-admin").post(&path, json!({})).await.with(200)
}

const LAUNCH_IS: &str =
    "select exists (select 1 from node_tasks where run_id = $1 and kind = 'oci.launch' and status = $2[1])";

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_withdraws_a_launch_that_no_node_has_taken() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    // The node is away, so the task lies there: written, with all that is needed to run it.
    platform.door.cut(true);
    let folder = agent.kill().await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.story.until_true("the task is written", LAUNCH_IS, run, &["queued"]).await;
    revoke_version(&platform, &number).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "artifact_revoked");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    platform.door.cut(false);
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform.decommission(id).await;
    assert_eq!(driver.launches(), 0, "the node that comes back finds nothing to launch");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_turns_back_a_launch_that_a_node_is_at_work_on() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    driver.will(SimulatedFault::Hang);
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.story.until_true("the node has the task", LAUNCH_IS, run, &["handed_out"]).await;
    revoke_version(&platform, &number).await;
    platform.story.until_true("the run heard of it", LAUNCH_IS, run, &["failed"]).await;
    // Whatever the node makes of it now does not count, and goes.
    driver.release(1);
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    assert_eq!(platform.instance(id).await["status_reason"]["code"], "artifact_revoked");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(driver.seen().await.unwrap(), vec![]);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_runs_that_resolved_the_artifact_before() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    // Nothing is placed while the allocation is held, so the run stands after it has looked at the artifact.
    let mut hold = platform.story.pool.begin().await.unwrap();
    sqlx::query("select 1 from allocations where id = $1 for no key update")
        .bind(allocation)
        .execute(&mut *hold)
        .await
        .unwrap();
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    let resolved = "select exists (select 1 from engine.step where run_id = $1 and name = $2[1] and state = 'succeeded')";
    platform.story.until_true("the artifact is resolved", resolved, run, &["resolve_artifacts"]).await;
    let revoked = revoke_version(&platform, &number).await;
    assert_eq!(revoked["affected_instances"][0]["app_instance_id"], json!(id));
    hold.rollback().await.unwrap();
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let instance = platform.instance(id).await;
    assert_eq!(instance["status_reason"]["code"], "artifact_revoked");
    assert_eq!(platform.held(id).await, Vec::<String>::new());
    assert_eq!(driver.launches(), 0, "no node ever heard of it");
    agent.end().await;
    platform.end().await;
}
