//! What operators ask over HTTP is done once, in order, and refused with the reason.

use axum::http::Method;
use engine::RunState;
use serde_json::{Value, json};

use super::{Http, project};
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn pausing_and_resuming_is_answered_with_the_run_and_where_to_follow_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}"));

    let answer = http.post(&format!("{path}/pause"), json!({ "reason": "maintenance" })).await;
    assert_eq!(answer.header("location"), path);
    assert_eq!(answer.header("retry-after"), "1");
    let paused = answer.with(202);
    assert_eq!(paused["status"], "paused");
    assert_eq!(paused["stuck_cause"]["code"], "paused_by_operator");
    assert_eq!(
        paused["workflow"],
        json!({ "id": run, "kind": "test.script", "status": "paused", "correlation_id": "c-test", "href": path })
    );
    let reason: Option<String> = sqlx::query_scalar("select reason from engine.act where run_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(reason.as_deref(), Some("maintenance"));

    http.send(Method::POST, &format!("{path}/resume"), &[], None).await.with(202);
    story.until(run, &[RunState::Waiting]).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_with_wait_answers_the_undone_run() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([hold("a"), Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let settled =
        http.post(&project(&format!("/workflows/{run}/cancel?wait=30s")), json!({})).await.with(200);
    assert_eq!(settled["workflow"]["status"], "cancelled");
    assert_eq!(settled["requested"], Value::Null);
    assert!(story.effects(run).await.iter().all(|(_, held, ..)| !held));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_state_forbids_is_a_conflict_that_names_what_is_allowed() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let refused = http.post(&project(&format!("/workflows/{run}/resume")), json!({})).await.with(409);
    assert_eq!(refused["code"], "state_conflict");
    assert_eq!(refused["details"]["state"], "waiting");
    let shown = http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    assert_eq!(refused["details"]["allowed_actions"], shown["allowed_actions"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retrying_a_paused_run_goes_on_and_retrying_a_finished_one_starts_anew() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", [Trouble::NeedsOperator, Trouble::Terminal]);
    let run = story.start([touch("odd")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);

    let again = http.post(&project(&format!("/workflows/{run}/retry?wait=30s")), json!({})).await.with(200);
    assert_eq!(again["id"], json!(run));
    assert_eq!(again["status"], "failed");

    let anew = http.post(&project(&format!("/workflows/{run}/retry?wait=30s")), json!({})).await.with(200);
    assert_ne!(anew["id"], json!(run));
    assert_eq!(anew["retry_of"], json!(run));
    assert_eq!(anew["status"], "succeeded");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_guarded_by_a_tag_happens_only_to_what_was_seen() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}"));
    let seen = http.get(&path).await.header("etag").to_owned();
    assert_eq!(http.get(&path).await.header("etag"), seen, "an unchanged run keeps its tag");

    let guarded = |act: &str, tag: String| {
        let (http, path) = (&http, format!("{path}/{act}"));
        async move { http.send(Method::POST, &path, &[("if-match", &tag)], Some(json!({}))).await }
    };
    guarded("pause", seen.clone()).await.with(202);
    let refused = guarded("resume", seen).await.with(412);
    assert_eq!(refused["code"], "precondition_failed");
    assert_eq!(story.state(run).await, RunState::Paused);
    let now = http.get(&path).await.header("etag").to_owned();
    assert_eq!(refused["details"]["etag"], json!(now));
    guarded("resume", now).await.with(202);
    story.until(run, &[RunState::Waiting]).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_past_the_point_of_no_return_is_a_conflict() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Pivot, Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let refused = http.post(&project(&format!("/workflows/{run}/cancel")), json!({})).await.with(409);
    assert_eq!(refused["code"], "state_conflict");
    assert_eq!(refused["message"], "the run is past its point of no return");
    story.signal(run, "word", "1", json!("go")).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_tried_again_by_itself_can_be_paused_and_says_so() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("b", [Trouble::Terminal]);
    let run = story.start([Do::Pivot, touch("b")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);
    let path = project(&format!("/workflows/{run}"));
    let shown = http.get(&path).await.with(200);
    assert_eq!(shown["allowed_actions"], json!(["retry", "resume", "pause"]));
    assert!(shown["stuck_cause"]["next_at"].is_string(), "{shown:#}");
    let next = shown["stuck_cause"]["next_action"].as_str().unwrap();
    assert!(next.contains("unless you pause it"), "{next}");

    let paused = http.post(&format!("{path}/pause"), json!({})).await.with(202);
    assert_eq!(paused["stuck_cause"]["code"], "paused_by_operator");
    assert_eq!(paused["stuck_cause"]["next_at"], Value::Null);
    assert_eq!(paused["allowed_actions"], json!(["retry", "resume"]));
    http.post(&format!("{path}/pause"), json!({})).await.with(409);
    http.post(&format!("{path}/resume?wait=30s"), json!({})).await.with(200);
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}
