//! What stands outside is away for hours, or full: runs wait for it, say for what, and end when it is back.

use std::time::Duration;

use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use super::yard::{OURS, Yard};
use crate::http::project;
use crate::support::image::Image;

const WEEK: Duration = Duration::from_secs(7 * 86_400 + 1);
/// Longer than a wait between two tries.
const A_WHILE: Duration = Duration::from_secs(301);
/// So many whiles are hours.
const WHILES: usize = 45;

fn run_of(accepted: &Value) -> Uuid {
    accepted["workflow"]["id"].as_str().unwrap().parse().unwrap()
}

/// The run has tried the step so often, and waits for the next try.
async fn tried(yard: &Yard, run: Uuid, step: &str, times: usize) {
    let waits = "select exists (select 1 from engine.step s join engine.run r on r.id = s.run_id
        where r.id = $1 and r.state = 'waiting' and r.cause = 'backoff' and s.name = $2[1] and s.attempt >= $2[2]::int)";
    let times = times.to_string();
    yard.story.until_true(&format!("{step} waits after {times} tries"), waits, run, &[step, &times]).await;
}

/// For hours, the run says which step waits and for what.
async fn waits_for_hours(yard: &Yard, run: Uuid, step: &str) {
    for times in 1..WHILES {
        tried(yard, run, step, times).await;
        yard.story.advance(A_WHILE).await;
    }
    tried(yard, run, step, WHILES).await;
    let shown = yard.http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    let cause = &shown["stuck_cause"];
    assert_eq!((&cause["code"], &cause["detail"]["step"]), (&json!("backoff"), &json!(step)), "{shown:#}");
    assert_eq!(cause["detail"]["error"]["code"], "registry_unavailable", "{cause:#}");
    assert!(cause["next_at"].is_string(), "{cause:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retirement_outlasts_a_registry_that_is_away_for_hours() {
    let mut yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let accepted = yard.act("project-admin", &artifact, "retire", json!({ "when": "now" })).await.with(202);
    let run = run_of(&accepted);
    yard.story.until(run, &[RunState::Waiting]).await;
    yard.registry.stop();
    yard.story.advance(WEEK).await;
    waits_for_hours(&yard, run, "list_manifests").await;
    yard.registry.start_again();
    yard.story.advance(A_WHILE).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    let left = yard.registry.client().repository(OURS).find_manifest(image.digest.as_str()).await.unwrap();
    assert!(left.is_none(), "its bytes are gone");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_outlasts_a_registry_that_is_away_for_hours() {
    let mut yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    yard.registry.stop();
    let accepted = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(202);
    let run = run_of(&accepted);
    waits_for_hours(&yard, run, "verify_artifact").await;
    yard.registry.start_again();
    yard.story.advance(A_WHILE).await;
    assert_eq!(yard.story.ends(run).await, RunState::Succeeded, "{}", yard.story.describe(run).await);
    assert_eq!(yard.shown(&artifact).await["channels"], json!(["dev"]));
    yard.end().await;
}
