//! Many runs stopped by one cause are set going together, after a rehearsal that changes nothing.

use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Http, admin};
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

fn verdicts(report: &Value) -> Vec<(&str, &str)> {
    let results = report["results"].as_array().unwrap();
    results.iter().map(|r| (r["id"].as_str().unwrap(), r["verdict"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_with_the_same_error_are_rehearsed_and_then_retried() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", vec![Trouble::NeedsOperator; 3]);
    let mut stopped = Vec::new();
    for _ in 0..3 {
        let run = story.start([touch("odd")]).await;
        assert_eq!(story.settles(run).await, RunState::Paused);
        stopped.push(run);
    }
    let waiting = story.start([Do::Wait(HOUR)]).await;
    story.until(waiting, &[RunState::Waiting]).await;
    let filter = json!({ "kind": "test.script", "error_signature": "somebody should look" });

    let rehearsal = http
        .post(&admin("/workflows/bulk-retry"), json!({ "filter": filter, "dry_run": true, "limit": 2 }))
        .await
        .with(200);
    assert_eq!(rehearsal["more"], true);
    assert!(verdicts(&rehearsal).iter().all(|(_, verdict)| *verdict == "would_retry"));
    assert_eq!(verdicts(&rehearsal).len(), 2);
    for run in &stopped {
        assert_eq!(story.state(*run).await, RunState::Paused);
    }

    let report = http.post(&admin("/workflows/bulk-retry"), json!({ "filter": filter })).await.with(200);
    let expected: Vec<String> = stopped.iter().map(Uuid::to_string).collect();
    assert_eq!(verdicts(&report), expected.iter().map(|id| (id.as_str(), "retried")).collect::<Vec<_>>());
    for run in stopped {
        assert_eq!(story.ends(run).await, RunState::Succeeded);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_named_run_gets_its_own_verdict() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    let stopped = story.start([touch("odd")]).await;
    assert_eq!(story.settles(stopped).await, RunState::Paused);
    let waiting = story.start([Do::Wait(HOUR)]).await;
    story.until(waiting, &[RunState::Waiting]).await;
    let nobody = Uuid::now_v7();

    let report = http
        .post(&admin("/workflows/bulk-retry"), json!({ "ids": [nobody, waiting, stopped] }))
        .await
        .with(200);
    let results = report["results"].as_array().unwrap();
    let of = |id: Uuid| results.iter().find(|r| r["id"] == json!(id)).unwrap();
    assert_eq!(of(stopped)["verdict"], "retried");
    assert_eq!(
        (&of(waiting)["verdict"], &of(waiting)["code"]),
        (&json!("refused"), &json!("state_conflict"))
    );
    assert_eq!(
        (&of(nobody)["verdict"], &of(nobody)["code"]),
        (&json!("refused"), &json!("workflow_not_found"))
    );
    assert_eq!(story.ends(stopped).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retrying_everything_at_once_is_refused() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for body in
        [json!({}), json!({ "filter": {} }), json!({ "filter": { "ended": true } }), json!({ "ids": [] })]
    {
        let refused = http.post(&admin("/workflows/bulk-retry"), body).await.with(400);
        assert_eq!(refused["code"], "validation_error");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_failed_alike_are_begun_anew_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("broken", vec![Trouble::Terminal; 2]);
    let mut failed = Vec::new();
    for (steps, state) in [
        (vec![touch("broken")], RunState::Failed),
        (vec![hold("desk"), touch("broken")], RunState::Compensated),
    ] {
        let run = story.start(steps).await;
        assert_eq!(story.ends(run).await, state);
        failed.push(run.to_string());
    }
    let open = admin("/workflows?status=failed,compensated&latest=true&kind=test.script");
    assert_eq!(http.get(&open).await.with(200)["items"].as_array().unwrap().len(), 2);

    let resting = json!({ "kind": "test.script", "error_signature": "impossible" });
    let none = http.post(&admin("/workflows/bulk-retry"), json!({ "filter": resting })).await.with(200);
    assert_eq!(none["results"], json!([]), "what ended does not rest");

    let mut ended = resting;
    ended["ended"] = json!(true);
    let report = http.post(&admin("/workflows/bulk-retry"), json!({ "filter": ended })).await.with(200);
    let expected: Vec<(&str, &str)> = failed.iter().map(|id| (id.as_str(), "retried")).collect();
    assert_eq!(verdicts(&report), expected);
    for result in report["results"].as_array().unwrap() {
        let again: Uuid = result["workflow"]["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(story.ends(again).await, RunState::Succeeded);
    }

    let twice = http.post(&admin("/workflows/bulk-retry"), json!({ "filter": ended })).await.with(200);
    assert_eq!(twice["results"], json!([]), "they were tried again");
    assert_eq!(http.get(&open).await.with(200)["items"], json!([]));
    story.end().await;
}
