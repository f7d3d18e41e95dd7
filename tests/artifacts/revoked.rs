//! Revoked bytes are not used again, whatever they are called: under no version, inside no index, by no run in flight.

use agent::{Driver, Simulated, SimulatedFault};
use domain::ErrorCode;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use super::yard::Yard;
use crate::http::project;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::image::{INDEX, Image, MANIFEST, digest};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::{DEMO, EXAMPLE, NEXT_DOOR};
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
    let path = project(&format!("/app-artifacts/{}/revoke", artifact_of(platform, number).await));
    platform.http.acting("project-admin").post(&path, json!({})).await.with(200)
}

async fn artifact_of(platform: &Platform, number: &str) -> Uuid {
    let digest = shelve(number).to_string();
    let found = platform.http.get(&project(&format!("/app-artifacts?digest={digest}"))).await.with(200);
    id_of(&found["items"][0])
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

fn index_of(images: &[&Image]) -> Vec<u8> {
    let entry = |image: &&Image| json!({ "mediaType": MANIFEST, "digest": image.digest, "size": image.manifest.len() });
    let entries: Vec<Value> = images.iter().map(entry).collect();
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries }).to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_index_takes_what_it_names_along_and_nothing_else() {
    let yard = Yard::new().await;
    let [one, two, other] = ["amd64", "arm64", "something else"].map(Image::saying);
    let holder = yard.push(&one).await;
    for image in [&two, &other] {
        yard.push(image).await;
    }
    let (index, shared) = (index_of(&[&one, &two]), index_of(&[&one, &other]));
    for (tag, bytes) in [("index", &index), ("shared", &shared)] {
        holder.push_manifest(tag, INDEX, bytes).await.unwrap();
    }
    let whole = yard.register(&one, json!({ "digest": digest(&index) })).await.with(201);
    let sharing = yard.register(&one, json!({ "digest": digest(&shared) })).await.with(201);
    yard.intent(json!({ "app_version": "1.1.0" })).await;
    let child = yard.register(&one, json!({ "app_version": "1.1.0" })).await.with(201);

    yard.act("project-admin", &whole, "revoke", json!({ "reason": "leaked" })).await.with(200);
    for revoked in [&whole, &child, &sharing] {
        assert_eq!(yard.shown(revoked).await["trust_state"], "revoked");
    }
    for image in [&one, &two] {
        let refused =
            yard.register(image, json!({ "app_version": "1.1.0", "artifact_name": "runtime" })).await;
        assert!([409, 422].contains(&refused.status.as_u16()), "{:#}", refused.body);
    }
    let refused = yard.register(&two, json!({ "app_version": "1.1.0" })).await.with(422);
    assert_eq!(refused["code"], ErrorCode::ArtifactUntrusted.as_str(), "it was never registered by itself");
    yard.register(&other, json!({})).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_every_callers_credential_that_reaches_the_bytes() {
    let yard = Yard::new().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let bad = yard.publish(&image).await;
    yard.push(&other).await;
    let sibling = yard.register(&other, json!({})).await.with(201);
    let ask = async || {
        let wanted = json!({ "artifact_id": sibling["id"] });
        let pulls = project("/app-artifacts/pull-intents");
        let intent = yard.http.acting("publisher").post(&pulls, wanted).await.with(201);
        yard.speak(super::yard::OURS, &yard.unwrap(&intent).await)
    };
    let reader = ask().await;
    reader.manifest(image.digest.as_str()).await.expect("registries show a whole repository");
    let node = yard.credential(super::yard::OURS, false, 900).await;
    sqlx::query(
        "insert into pull_intents (id, org_id, project_id, artifact_id, repository, digest, node_id, created_by, correlation_id, expires_at)
         select $1::text::uuid, org_id, project_id, id, repository, digest, gen_random_uuid(), created_by, 'c', engine.now() + interval '1 hour'
         from app_artifacts where id = $2::text::uuid",
    )
    .bind(&node.username)
    .bind(sibling["id"].as_str().unwrap())
    .execute(&yard.story.pool)
    .await
    .unwrap();

    yard.act("project-admin", &bad, "revoke", json!({})).await.with(200);
    assert!(reader.manifest(image.digest.as_str()).await.is_err(), "a sibling's credential reaches it");
    assert!(reader.manifest(other.digest.as_str()).await.is_err(), "it is good for nothing any more");
    ask().await.manifest(other.digest.as_str()).await.expect("a new one is had for the asking");
    let node = yard.speak(super::yard::OURS, &node);
    node.manifest(other.digest.as_str()).await.expect("a launch of another artifact goes on");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_revokes_hears_of_every_instance_that_runs_the_bytes_in_whichever_project() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let more = "with ids as (select gen_random_uuid() as id from generate_series(1, 1000)),
         instance as (insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status,
             operating_mode, control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
             select id, $1, $2, 'hello', '1.0.0', 'user', 'running', 'tenant_dedicated', 'project', 'launchable_oci', '{}', '{}',
                 '{}', 'c', id from ids)
         insert into app_instance_artifacts (instance_id, standing, name, artifact_id, digest, repository)
         select ids.id, 'serving', 'runtime', u.artifact_id, u.digest, u.repository
         from ids, app_instance_artifacts u where u.instance_id = $3 and u.standing = 'serving'";
    let more = sqlx::query(more).bind(DEMO).bind(NEXT_DOOR).bind(id);
    more.execute(&platform.story.pool).await.unwrap();

    let artifact = artifact_of(&platform, &number).await;
    let path = project(&format!("/app-artifacts/{artifact}/retire"));
    let used = platform.http.acting("project-admin").post(&path, json!({ "when": "now" })).await.with(409);
    let uses = &used["details"]["references"];
    assert_eq!(
        (&uses["totals"]["instances"], uses["instances"].as_array().unwrap().len()),
        (&json!(1001), 100)
    );
    assert!(used["message"].as_str().unwrap().starts_with("1001 instances, 1 versions"), "{used:#}");
    let revoked = revoke_version(&platform, &number).await;
    assert_eq!(revoked["affected_total"], 1001);
    let listed = revoked["affected_instances"].as_array().unwrap();
    assert_eq!(listed.len(), 1000, "the rest is counted");
    assert!(listed.iter().any(|used| used["project_id"] == json!(NEXT_DOOR)));
    let gone = "delete from app_instance_artifacts where instance_id in (select id from app_instances where project_id = $1)";
    sqlx::query(gone).bind(NEXT_DOOR).execute(&platform.story.pool).await.unwrap();
    let again = revoke_version(&platform, &number).await;
    let serving =
        json!({ "app_instance_id": id, "project_id": EXAMPLE, "standing": "serving", "status": "running" });
    assert_eq!((&again["affected_total"], &again["affected_instances"]), (&json!(1), &json!([serving])));
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_from_where_policy_lets_nothing_in_any_more_is_not_launched() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let policy = format!("/api/v1/admin/policies/project/{EXAMPLE}/artifact.source_allowlist");
    platform.http.put(&policy, json!({ "value": ["gpuaas/apps/elsewhere"] })).await.with(200);
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    assert_ne!(platform.story.ends(run).await, RunState::Succeeded);
    let reason = &platform.instance(id).await["status_reason"];
    assert_eq!(reason["code"], "artifact_revoked", "{reason:#}");
    assert!(reason["message"].as_str().unwrap().contains("not among the sources"), "{reason:#}");
    assert_eq!(driver.launches(), 0, "no node ever heard of it");
    agent.end().await;
    platform.end().await;
}
