//! Revoked bytes are not used again, whatever they are called: under no version, inside no index, by no run in flight.

use domain::ErrorCode;
use engine::RunState;
use serde_json::json;

use super::yard::Yard;
use crate::http::project;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_reaches_runs_that_resolved_the_artifact_before() {
    let platform = Platform::new().await;
    let driver = agent::Simulated::new();
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
    let digest = shelve(&number).to_string();
    let found = platform.http.get(&project(&format!("/app-artifacts?digest={digest}"))).await.with(200);
    let path = project(&format!("/app-artifacts/{}/revoke", id_of(&found["items"][0])));
    let revoked = platform.http.acting("project-admin").post(&path, json!({})).await.with(200);
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
