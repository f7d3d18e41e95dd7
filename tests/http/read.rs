//! Lists and single runs: what is there is shown, once, to those in whose project it is.

use std::time::{Duration, Instant};

use engine::{RunState, Settings, Start};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Http, admin, project};
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_shows_its_steps_their_attempts_and_what_lies_ahead() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("b", [Trouble::Retry]);
    let traced = Start { traceparent: Some(format!("00-{TRACE}-00f067aa0ba902b7-01")), ..start() };
    let run = story.start_as([touch("a"), hold("b"), Do::Wait(HOUR)], traced).await.unwrap().id;
    story.until(run, &[RunState::Waiting]).await;

    let answer = http.get(&project(&format!("/workflows/{run}"))).await;
    assert!(answer.header("etag").starts_with('"'));
    let shown = answer.with(200);
    assert_eq!(shown["kind"], "test.script");
    assert_eq!(shown["status"], "waiting");
    assert_eq!(shown["correlation_id"], "c-test");
    assert_eq!(shown["allowed_actions"], json!(["pause", "cancel"]));
    let steps = shown["steps"].as_array().unwrap();
    let states: Vec<(&str, &str)> =
        steps.iter().map(|s| (s["name"].as_str().unwrap(), s["state"].as_str().unwrap())).collect();
    assert_eq!(
        states,
        [
            ("touch", "succeeded"),
            ("hold", "succeeded"),
            ("word", "waiting"),
            ("write", "pending"),
            ("sleep", "pending"),
            ("test.child", "pending"),
        ]
    );
    let tries: Vec<&Value> = steps[1]["attempts"].as_array().unwrap().iter().map(|a| &a["outcome"]).collect();
    assert_eq!(tries, ["retry", "succeeded"]);
    assert_eq!(steps[1]["undoable"], true);
    assert_eq!(steps[1]["output"], "done b");
    assert!(steps[3]["seq"].is_null());
    let attempt = &steps[1]["attempts"][0];
    for (what, trace) in
        [("run", &shown["trace_id"]), ("step", &steps[1]["trace_id"]), ("attempt", &attempt["trace_id"])]
    {
        assert_eq!(trace, TRACE, "{what}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_a_finished_run_never_reached_are_skipped() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([touch("a")]).await;
    story.ends(run).await;
    let shown = http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    let skipped = shown["steps"].as_array().unwrap().iter().filter(|step| step["state"] == "skipped").count();
    assert_eq!(skipped, 5);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn walking_the_pages_meets_every_run_once_newest_first() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let mut started = Vec::new();
    for _ in 0..7 {
        started.push(story.start([touch("a")]).await);
    }
    started.reverse();
    let mut met = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = http.get(&project(&format!("/workflows?limit=3{cursor}"))).await;
        let next = answer.body["next_cursor"].as_str().map(str::to_owned);
        met.extend(answer.ids());
        let Some(next) = next else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(met, started);
    story.quiet().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_narrows() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let about = |target: &str, correlation: &str| Start {
        target: Some(target.into()),
        correlation_id: correlation.into(),
        ..start()
    };
    let done = story.start_as([touch("a")], about("instance/1", "c-1")).await.unwrap().id;
    story.ends(done).await;
    let waits = story.start_as([Do::Wait(HOUR)], about("instance/2", "c-2")).await.unwrap().id;
    story.until(waits, &[RunState::Waiting]).await;

    for (filter, expected) in [
        ("kind=test.script", vec![waits, done]),
        ("kind=test.child", vec![]),
        ("status=succeeded", vec![done]),
        ("status=waiting,paused", vec![waits]),
        ("status=waiting,succeeded", vec![waits, done]),
        ("subject=instance/1", vec![done]),
        ("correlation_id=c-2", vec![waits]),
        ("cause=waiting_signal", vec![waits]),
        ("cause=backoff", vec![]),
        ("since=2000-01-01T00:00:00Z", vec![waits, done]),
        ("since=2100-01-01T00:00:00Z", vec![]),
        ("subject=instance/1&status=waiting", vec![]),
    ] {
        for path in [project("/workflows"), admin("/workflows")] {
            assert_eq!(http.get(&format!("{path}?{filter}")).await.ids(), expected, "{path}?{filter}");
        }
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_project_does_not_exist() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let elsewhere = format!("/api/v1/projects/{}/workflows", Uuid::from_u128(2));
    assert!(http.get(&elsewhere).await.ids().is_empty());
    for path in [
        format!("{elsewhere}/{run}"),
        format!("{elsewhere}/{run}/stream"),
        format!("{elsewhere}/{run}?wait=5s"),
    ] {
        assert_eq!(http.get(&path).await.with(404)["code"], "workflow_not_found", "{path}");
    }
    for act in ["pause", "resume", "retry", "cancel"] {
        let answer = http.post(&format!("{elsewhere}/{run}/{act}"), json!({})).await;
        assert_eq!(answer.with(404)["code"], "workflow_not_found", "{act}");
    }
    assert_eq!(story.state(run).await, RunState::Waiting);
    assert_eq!(http.get(&admin(&format!("/workflows/{run}"))).await.with(200)["id"], json!(run));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_answers_when_the_run_settles_or_the_time_is_up() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR), touch("a")]).await;
    story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}?wait="));

    assert_eq!(http.get(&format!("{path}50ms")).await.with(202)["status"], "waiting");
    let began = Instant::now();
    let (answer, _) = tokio::join!(
        async { http.get(&format!("{path}30s")).await },
        story.signal(run, "word", "k", json!("go")),
    );
    assert_eq!(answer.with(200)["status"], "succeeded");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "the answer came with the settling, not with the deadline"
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_hold_no_connection() {
    let story = Story::with(Settings { api_connections: 1, ..quick() }, None).await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}?wait=2s"));
    let waiting = futures::future::join_all((0..20).map(|_| http.get(&path)));
    let reading = async {
        let began = Instant::now();
        http.get(&project("/workflows")).await.with(200);
        began.elapsed()
    };
    let (waited, read_in) = tokio::join!(waiting, reading);
    assert!(waited.into_iter().all(|answer| answer.status == 202));
    assert!(read_in < Duration::from_millis(1500), "a reader waited {read_in:?} behind the waiting");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_when_the_process_stops() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/workflows/{run}?wait=60s"));
    let (answer, ()) = tokio::join!(http.get(&path), async { http.state.drain() });
    assert_eq!(answer.status, 202);
    assert_eq!(http.get("/readyz").await.with(503)["code"], "service_unavailable");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_cannot_be_stored_is_the_callers_mistake() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    for path in [project("/workflows?kind=%00"), project("/workflows?subject=a%00b")] {
        assert_eq!(http.get(&path).await.with(400)["code"], "invalid_request", "{path}");
    }
    for path in [project(&format!("/workflows/{run}/pause")), admin("/schedules/a%00b/pause")] {
        let answer = http.post(&path, json!({ "reason": "a\u{0}b" })).await;
        assert_eq!(answer.with(400)["code"], "invalid_request", "{path}");
    }
    assert_eq!(story.state(run).await, RunState::Waiting);
    story.end().await;
}
