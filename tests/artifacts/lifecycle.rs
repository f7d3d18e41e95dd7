//! Promoted, deprecated, retired: each by a run that looks afresh, waits for what it must, and never deletes what is needed.

use std::time::Duration;

use domain::Digest;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use super::signer;
use super::yard::{OURS, Yard};
use crate::catalog;
use crate::http::project;
use crate::support::image::{INDEX, Image, MANIFEST};
use crate::support::realm::{DEMO, EXAMPLE};

const WEEK: Duration = Duration::from_secs(7 * 86_400 + 1);

fn run_of(accepted: &Value) -> Uuid {
    accepted["workflow"]["id"].as_str().unwrap().parse().unwrap()
}

/// How the run ended, and why if it failed.
pub(super) async fn ended(yard: &Yard, accepted: &Value) -> (RunState, Value) {
    let run = run_of(accepted);
    let state = yard.story.ends(run).await;
    let shown = yard.http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    (state, shown["error"]["code"].clone())
}

/// An instance that serves the artifact.
async fn user_of(yard: &Yard, artifact: &Value) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "with instance as (insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status,
             operating_mode, control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
         values ($1, $2, $3, 'hello', '1.0.0', 'user', 'running', 'tenant_dedicated', 'project', 'launchable_oci', '{}', '{}',
             '{}', 'c', $1))
         insert into app_instance_artifacts (instance_id, standing, name, artifact_id, digest, repository)
         values ($1, 'previous', 'runtime', $4::text::uuid, $5, $6)",
    )
    .bind(id)
    .bind(DEMO)
    .bind(EXAMPLE)
    .bind(artifact["id"].as_str().unwrap())
    .bind(artifact["digest"].as_str().unwrap())
    .bind(artifact["repository"].as_str().unwrap())
    .execute(&yard.story.pool)
    .await
    .unwrap();
    id
}

async fn ends_using(yard: &Yard, instance: Uuid) {
    let mut conn = yard.story.pool.acquire().await.unwrap();
    store::app_instance_artifacts::clear_all(&mut conn, instance).await.unwrap();
}

async fn has(yard: &Yard, reference: &str) -> bool {
    yard.registry.client().repository(OURS).find_manifest(reference).await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_reaches_a_channel_after_a_fresh_look() {
    let yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    let body = json!({ "channel": "dev", "reason": "the tests passed" });
    let accepted = yard.act("publisher", &artifact, "promote", body).await.with(202);
    assert_eq!(accepted["workflow"]["kind"], "artifact.promote");
    assert_eq!(ended(&yard, &accepted).await.0, RunState::Succeeded);
    let shown = yard.shown(&artifact).await;
    assert_eq!((&shown["lifecycle_state"], &shown["trust_state"]), (&json!("promoted"), &json!("verified")));
    assert_eq!(shown["channels"], json!(["dev"]));
    let again = yard.act("publisher", &artifact, "promote", json!({ "channel": "prod" })).await.with(202);
    assert_eq!(ended(&yard, &again).await.0, RunState::Succeeded);
    assert_eq!(yard.shown(&artifact).await["channels"], json!(["dev", "prod"]));
    assert_eq!(
        yard.events().await,
        [
            "apps.artifact.published",
            "apps.artifact.verified",
            "apps.artifact.promoted",
            "apps.artifact.promoted"
        ]
    );
    let told: Vec<(String, Option<String>)> =
        sqlx::query_as("select action, reason from audit where action like 'artifact.%' order by id")
            .fetch_all(&yard.story.pool)
            .await
            .unwrap();
    let why = Some("the tests passed".to_owned());
    assert_eq!(
        told[..2],
        [("artifact.verified".to_owned(), why.clone()), ("artifact.promoted".to_owned(), why)]
    );
    assert_eq!(yard.act("publisher", &artifact, "promote", json!({ "channel": "moon" })).await.status, 400);
    assert_eq!(yard.act("publisher", &artifact, "promote", json!({})).await.status, 400);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_artifact_goes_on_and_takes_nothing_new() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let accepted = yard.act("publisher", &artifact, "deprecate", json!({})).await.with(202);
    assert_eq!(ended(&yard, &accepted).await.0, RunState::Succeeded);
    let shown = yard.shown(&artifact).await;
    assert_eq!(
        (&shown["lifecycle_state"], &shown["allowed_actions"]),
        (&json!("deprecated"), &json!(["verify", "revoke", "retire"]))
    );
    let refused = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(409);
    assert_eq!(
        (&refused["code"], &refused["details"]["state"]),
        (&json!("state_conflict"), &json!("deprecated"))
    );
    assert_eq!(
        refused["details"]["allowed_actions"], shown["allowed_actions"],
        "no refusal offers anything else"
    );
    assert_eq!(yard.events().await, ["apps.artifact.published", "apps.artifact.deprecated"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_ends_with_its_last_user_and_its_bytes_a_grace_period_later() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let signed = format!("sha256-{}.sig", image.digest.hex());
    signer::cosign(&yard.push(&image).await, 1, &image.digest, &image.digest).await;
    let user = user_of(&yard, &artifact).await;
    let now = yard.act("project-admin", &artifact, "retire", json!({ "when": "now" })).await.with(409);
    assert_eq!(now["code"], "version_in_use");
    assert_eq!(now["details"]["references"]["instances"][0]["app_instance_id"], json!(user));

    let accepted = yard.act("project-admin", &artifact, "retire", json!({})).await.with(202);
    let run = run_of(&accepted);
    yard.story.until(run, &[RunState::Waiting]).await;
    assert_eq!(yard.shown(&artifact).await["lifecycle_state"], "deprecated", "nothing new from the start");
    let second = yard.act("project-admin", &artifact, "retire", json!({})).await.with(409);
    assert_eq!(second["code"], "operation_in_progress");
    yard.story.advance(WEEK).await;
    yard.story.until_step(run, "0", "waiting").await;
    let shown = yard.http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    let look = shown["steps"].as_array().unwrap().iter().find(|step| step["name"] == "list_uses").unwrap();
    assert_eq!(look["output"]["instances"][0]["standing"], "previous", "whoever holds it up is listed");

    ends_using(&yard, user).await;
    yard.story.advance(Duration::from_secs(3601)).await;
    yard.story.until_step(run, "", "waiting").await;
    assert_eq!(yard.shown(&artifact).await["lifecycle_state"], "retired");
    assert!(has(&yard, image.digest.as_str()).await, "its bytes are kept a while longer");
    let pull = json!({ "artifact_id": artifact["id"] });
    let refused =
        yard.http.acting("publisher").post(&project("/app-artifacts/pull-intents"), pull).await.with(422);
    assert_eq!(refused["code"], "artifact_not_deployable");

    yard.story.advance(WEEK).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    assert!(!has(&yard, image.digest.as_str()).await && !has(&yard, &signed).await);
    let events = yard.events().await;
    assert_eq!(events[events.len() - 2..], ["apps.artifact.deprecated", "apps.artifact.retired"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_another_registration_needs_stay() {
    let yard = Yard::new().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let first = yard.publish(&image).await;
    yard.intent(json!({ "app_version": "1.1.0" })).await;
    let second = yard.register(&image, json!({ "app_version": "1.1.0" })).await.with(201);
    // Whoever may push can say that a living image is the signature of one that goes.
    let holder = yard.push(&other).await;
    let living = yard.register(&other, json!({})).await.with(201);
    let tag = format!("sha256-{}.sig", image.digest.hex());
    holder.push_manifest(&tag, MANIFEST, &other.manifest).await.unwrap();

    yard.retired(&first).await;
    assert!(has(&yard, image.digest.as_str()).await, "the second registration has the same bytes");
    yard.retired(&second).await;
    assert!(!has(&yard, image.digest.as_str()).await);
    assert!(has(&yard, other.digest.as_str()).await, "{living:#}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vouches_for_bytes_stays_as_long_as_any_registration_of_them_does() {
    let yard = Yard::new().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let first = yard.publish(&image).await;
    yard.intent(json!({ "app_version": "1.1.0" })).await;
    let second = yard.register(&image, json!({ "app_version": "1.1.0" })).await.with(201);
    let holder = yard.push(&other).await;
    yard.register(&other, json!({})).await.with(201);
    signer::cosign(&holder, 1, &image.digest, &image.digest).await;
    signer::attest(&holder, 1, &image.digest, "https://ci.example").await;
    signer::bundle(&holder, 1, &image.digest).await;
    signer::cosign(&holder, 1, &other.digest, &other.digest).await;
    // Whoever may push can list the signature of a living image beside one that goes.
    let stray = format!("sha256-{}.sig", other.digest.hex());
    let found = yard.registry.client().repository(OURS).manifest(&stray).await.unwrap();
    let entry = json!({ "mediaType": MANIFEST, "digest": found.digest, "size": found.bytes.len() });
    let list = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] }).to_string();
    let tag = format!("sha256-{}", image.digest.hex());
    let vouching = [format!("{tag}.sig"), format!("{tag}.att"), tag.clone()];

    yard.retired(&first).await;
    for name in &vouching {
        assert!(has(&yard, name).await, "{name} vouches for what the second registration runs");
    }
    // Its own credential has expired with the week.
    yard.push(&other).await.push_manifest(&tag, INDEX, list.as_bytes()).await.unwrap();
    yard.retired(&second).await;
    for name in &vouching {
        assert!(!has(&yard, name).await, "{name} vouches for nothing any more");
    }
    assert!(has(&yard, &stray).await, "another image's own");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_frozen_with_it_holds_an_artifact() {
    let yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    catalog::acts(&yard.http, "hello", "1.0.0", "stage", json!({})).await;
    let refused = yard.act("project-admin", &artifact, "retire", json!({ "when": "now" })).await.with(409);
    assert_eq!(refused["details"]["references"]["versions"][0]["version"], "1.0.0");
    catalog::acts(&yard.http, "hello", "1.0.0", "retire", json!({ "when": "now" })).await;
    yard.retired(&artifact).await;
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_on_their_way_out_are_not_registered_again() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    yard.intent(json!({ "app_version": "1.1.0" })).await;
    going(&yard, &artifact, &image.digest).await;
    let refused = yard.register(&image, json!({ "app_version": "1.1.0" })).await;
    assert_eq!(refused.header("retry-after"), "10");
    assert_eq!(refused.with(409)["code"], "operation_in_progress");
    yard.end().await;
}

/// As a retirement leaves the row between its decision and the registry's answer.
async fn going(yard: &Yard, artifact: &Value, digest: &Digest) {
    sqlx::query("update app_artifacts set going = array[$2] where id = $1::text::uuid")
        .bind(artifact["id"].as_str().unwrap())
        .bind(digest.as_str())
        .execute(&yard.story.pool)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_away_is_waited_for() {
    let mut yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    yard.registry.stop();
    let accepted = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(202);
    let run = run_of(&accepted);
    yard.story
        .until_true(
            "the run backs off",
            "select state = 'waiting' and cause = 'backoff' from engine.run where id = $1 and $2::text[] is not null",
            run,
            &[],
        )
        .await;
    let shown = yard.http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    assert_eq!(shown["stuck_cause"]["code"], "backoff", "{shown:#}");
    let step = &shown["steps"][0];
    assert_eq!(
        (&step["name"], &step["error"]["code"]),
        (&json!("verify_artifact"), &json!("registry_unavailable"))
    );
    yard.registry.start_again();
    yard.story.advance(Duration::from_secs(301)).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    assert_eq!(yard.shown(&artifact).await["channels"], json!(["dev"]));
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_publishes_retired_bytes_again_hears_before_the_push_that_they_must_wait() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let ask = async |more: Value| {
        let mut wanted =
            json!({ "app_slug": "hello", "app_version": "1.0.0", "expected_digest": image.digest });
        for (name, value) in more.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        yard.http.acting("publisher").post(&project("/app-artifacts/publish-intents"), wanted).await
    };
    ask(json!({})).await.with(201);
    let accepted = yard.act("project-admin", &artifact, "retire", json!({ "when": "now" })).await.with(202);
    let run = run_of(&accepted);
    yard.story.until(run, &[RunState::Waiting]).await;
    let refused = ask(json!({})).await.with(409);
    assert_eq!(
        (&refused["code"], &refused["details"]["artifact_id"]),
        (&json!("state_conflict"), &artifact["id"])
    );
    ask(json!({ "app_version": "1.1.0" })).await.with(201);
    going(&yard, &artifact, &image.digest).await;
    let refused = ask(json!({ "app_version": "1.1.0" })).await.with(409);
    assert_eq!(refused["code"], "operation_in_progress");
    yard.story.advance(WEEK).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    yard.story.advance(Duration::from_secs(1)).await;
    ask(json!({})).await.with(201);
    yard.end().await;
}
