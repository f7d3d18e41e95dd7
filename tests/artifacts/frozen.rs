//! Bytes go while others push, register and retire: the registry may be frozen to collect its garbage, and whoever registers
//! takes turns with whoever deletes. Whatever the order, nothing that was accepted is lost.

use std::time::Duration;

use axum::http::StatusCode;
use engine::{RunState, Start};
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::reconcilers::retention::ClearAway;

use super::yard::{OURS, Yard};
use crate::http::Answer;
use crate::support::cluster::Folder;
use crate::support::image::{Image, MANIFEST, pull};
use crate::support::slow::short_or_slow;

const LONG: Duration = Duration::from_secs(8 * 86_400);
const WEEK: Duration = Duration::from_secs(7 * 86_400 + 1);

async fn has(yard: &Yard, image: &Image) -> bool {
    let repository = yard.registry.client().repository(OURS);
    repository.find_manifest(image.digest.as_str()).await.unwrap().is_some()
}

async fn told_of(yard: &Yard, image: &Image) {
    let told = "select exists (select 1 from registry_pushes where digest = $2[1]) and $1::uuid is not null";
    yard.story.until_true("the registry told of the push", told, Uuid::nil(), &[image.digest.as_str()]).await;
}

async fn clear_away(yard: &Yard) -> Uuid {
    let options = Start { correlation_id: "c-clear".into(), ..Start::default() };
    let mut tx = yard.story.pool.begin().await.unwrap();
    let mut run = yard.story.engine.start(&mut tx, &ClearAway {}, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    run.id
}

async fn retire(yard: &Yard, artifact: &Value) -> Uuid {
    let accepted = yard.act("project-admin", artifact, "retire", json!({ "when": "now" })).await.with(202);
    let run = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
    yard.story.until(run, &[RunState::Waiting]).await;
    run
}

/// Taken, or told to come again, or told that the bytes are not there: never taken without them.
async fn taken_with_its_bytes(yard: &Yard, image: &Image, answer: Answer) {
    match answer.status {
        StatusCode::CREATED => assert!(has(yard, image).await, "registered, and its bytes are gone"),
        StatusCode::CONFLICT => assert_eq!(answer.with(409)["code"], "operation_in_progress"),
        _ => assert_eq!(answer.with(400)["details"]["errors"][0]["pointer"], "/digest"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_garbage_is_collected_pushes_fail_deletions_wait_and_nothing_needed_goes() {
    let mut yard = Yard::new().await;
    let [needed, leaving, late] = ["needed", "leaving", "late"].map(Image::saying);
    yard.publish(&needed).await;
    let going = yard.publish(&leaving).await;
    let run = retire(&yard, &going).await;
    let intent = yard.intent(json!({})).await;
    let holder = yard.speak(OURS, &yard.unwrap(&intent).await);

    yard.registry.freeze();
    let refused = holder.push_bytes(&late.blobs()[0]).await.unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    yard.story.advance(WEEK).await;
    let waits = "select state = 'waiting' and cause = 'backoff' from engine.run where id = $1 and $2::text[] is not null";
    yard.story.until_true("the deletion backs off", waits, run, &[]).await;
    assert!(has(&yard, &leaving).await, "a frozen registry deletes nothing");
    yard.registry.collect_garbage();
    yard.registry.thaw();
    yard.story.advance(Duration::from_secs(301)).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    assert!(!has(&yard, &leaving).await, "it goes once it can");

    // What nobody names any more goes from the disk with the next collection, and what is needed is whole.
    let layer = crate::support::image::digest(&leaving.blobs()[0]);
    assert!(yard.registry.blob_file(&layer).exists(), "a layer stays until garbage is collected");
    yard.registry.freeze();
    yard.registry.collect_garbage();
    yard.registry.thaw();
    assert!(!yard.registry.blob_file(&layer).exists(), "and then it goes");
    let credential = yard.credential(OURS, false, 600).await;
    let (into, name) = (Folder::new(), yard.name(OURS, &format!("@{}", needed.digest)));
    let pulled = pull(&name, &into.0.join("it"), credential.pair()).await;
    assert!(pulled.done, "{}", pulled.words);
    yard.publish(&late).await;
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_away_takes_turns_with_whoever_registers() {
    let yard = Yard::new().await;
    let stray = Image::saying("stray");
    yard.push(&stray).await;
    told_of(&yard, &stray).await;
    yard.story.advance(LONG).await;
    let mut turn = yard.story.pool.begin().await.unwrap();
    store::app_artifacts::hold(&mut turn, OURS).await.unwrap();
    let run = clear_away(&yard).await;
    let waits = "select exists (select 1 from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database()))
        and $1::uuid is not null and $2::text[] is not null";
    yard.story.until_true("the run waits for its turn", waits, run, &[]).await;
    let condemned: i64 =
        sqlx::query_scalar("select count(*) from registry_pushes where going_at is not null")
            .fetch_one(&yard.story.pool)
            .await
            .unwrap();
    assert_eq!(condemned, 0, "nothing is decided while somebody registers");
    turn.commit().await.unwrap();
    yard.story.advance(Duration::from_secs(61)).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    assert!(!has(&yard, &stray).await);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_races_the_clearing_away_has_its_bytes_or_is_refused() {
    let yard = Yard::new().await;
    let strays: Vec<Image> =
        (0..short_or_slow(6, 60)).map(|number| Image::saying(&format!("stray {number}"))).collect();
    for stray in &strays {
        yard.push(stray).await;
        told_of(&yard, stray).await;
    }
    yard.story.advance(LONG).await;
    yard.intent(json!({})).await;
    let run = clear_away(&yard).await;
    let answers = join_all(strays.iter().map(|stray| yard.register(stray, json!({})))).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    for (stray, answer) in strays.iter().zip(answers) {
        taken_with_its_bytes(&yard, stray, answer).await;
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_races_the_retirement_of_its_bytes_has_them_or_is_refused() {
    let yard = Yard::new().await;
    for round in 0..short_or_slow(3, 30) {
        let image = Image::saying(&format!("round {round}"));
        let first = yard.publish(&image).await;
        let run = retire(&yard, &first).await;
        let second = json!({ "app_version": format!("2.{round}.0") });
        yard.story.advance(WEEK).await;
        yard.intent(second.clone()).await;
        let answer = yard.register(&image, second).await;
        assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
        taken_with_its_bytes(&yard, &image, answer).await;
        // Whoever was refused pushes again, and has it.
        let holder = yard.push(&image).await;
        holder.push_manifest("again", MANIFEST, &image.manifest).await.unwrap();
    }
    yard.end().await;
}
