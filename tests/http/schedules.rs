//! Schedules can be looked at, run by hand, paused and resumed.

use engine::{Missed, Overlap, RunState, Schedule};
use serde_json::json;
use uuid::Uuid;

use super::{Http, admin};
use crate::billing::office::Office;
use crate::support::story::Story;
use crate::support::world::{Do, Script, touch};

/// Declares one that never comes due in a story's time.
async fn yearly(story: &Story, does: Vec<Do>) {
    let schedule =
        Schedule { name: "yearly", cron: "0 0 0 1 1 *", missed: Missed::Skip, overlap: Overlap::Queue };
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &schedule, &Script { does }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_listed_paused_resumed_and_run_by_hand() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    yearly(&story, vec![touch("a")]).await;

    let page = http.get(&admin("/schedules")).await.with(200);
    let only = &page["items"][0];
    assert_eq!(
        (&only["name"], &only["kind"], &only["paused"]),
        (&json!("yearly"), &json!("test.script"), &json!(false))
    );
    assert_eq!((&only["missed"], &only["overlap"]), (&json!("skip"), &json!("queue")));
    assert_eq!(page["next_cursor"], json!(null));

    assert_eq!(http.post(&admin("/schedules/yearly/pause"), json!({})).await.with(200)["paused"], true);
    assert_eq!(http.post(&admin("/schedules/yearly/resume"), json!({})).await.with(200)["paused"], false);

    let answer = http.post(&admin("/schedules/yearly/run"), json!({})).await;
    let location = answer.header("location").to_owned();
    let handle = answer.with(202);
    let run: Uuid = handle["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(location, admin(&format!("/workflows/{run}")));
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let shown = http.get(&admin("/schedules")).await.with(200);
    let result = &shown["items"][0]["last_result"];
    assert_eq!((&result["run_id"], &result["status"]), (&json!(run), &json!("succeeded")));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_runs_a_schedule_may_wait_for_how_it_ends() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    yearly(&story, vec![touch("a")]).await;

    let path = admin("/schedules/yearly/run");
    let answer = http.post(&format!("{path}?wait=60s"), json!({})).await;
    let location = answer.header("location").to_owned();
    let handle = answer.with(200);
    assert_eq!(handle["status"], "succeeded", "{handle:#}");
    assert_eq!(handle["href"], json!(location));
    http.post(&format!("{path}?wait=soon"), json!({})).await.with(400);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reconciler_shows_what_its_last_run_found() {
    let office = Office::open().await;
    let (http, story) = (&office.platform.http, &office.platform.story);
    workflows::declare_schedules(&story.engine).await.unwrap();
    let all = http.get(&admin("/schedules")).await.with(200)["items"].as_array().unwrap().clone();
    let mut names: Vec<&str> = all.iter().map(|schedule| schedule["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accrual",
            "check_promises",
            "clean_up",
            "drift",
            "forget_events",
            "ledger_proof",
            "lost_nodes",
            "metering_rollup",
            "retention",
            "retirement",
            "rotate_signers",
            "stuck_runs"
        ]
    );
    for schedule in &all {
        let name = schedule["name"].as_str().unwrap();
        let started = http.post(&admin(&format!("/schedules/{name}/run")), json!({})).await.with(202);
        story.settles(started["id"].as_str().unwrap().parse().unwrap()).await;
    }
    let shown = http.get(&admin("/schedules")).await.with(200)["items"].clone();
    for schedule in shown.as_array().unwrap() {
        let result = &schedule["last_result"];
        assert_eq!(result["status"], "succeeded", "{schedule:#}");
        assert!(result["output"].as_object().is_some_and(|told| !told.is_empty()), "{schedule:#}");
        assert!(result["finished_at"].is_string());
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_says_why_at_its_schedule_and_one_under_way_does_not_hide_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    yearly(&story, vec![touch("a"), Do::Fail]).await;
    let run = async || -> Uuid {
        let handle = http.post(&admin("/schedules/yearly/run"), json!({})).await.with(202);
        handle["id"].as_str().unwrap().parse().unwrap()
    };
    let failed = run().await;
    assert_eq!(story.ends(failed).await, RunState::Failed);
    yearly(&story, vec![Do::Wait(3_600_000)]).await;
    let waiting = run().await;
    story.until(waiting, &[RunState::Waiting]).await;
    let shown = http.get(&admin("/schedules")).await.with(200)["items"][0].clone();
    assert_eq!((&shown["last_run_id"], &shown["last_run_status"]), (&json!(waiting), &json!("waiting")));
    let result = &shown["last_result"];
    assert_eq!((&result["run_id"], &result["status"]), (&json!(failed), &json!("failed")));
    assert!(result["error"]["code"].is_string(), "{shown:#}");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_nobody_declared_is_not_found() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for act in ["run", "pause", "resume"] {
        let answer = http.post(&admin(&format!("/schedules/nothing/{act}")), json!({})).await;
        assert_eq!(answer.with(404)["code"], "schedule_not_found");
    }
    story.end().await;
}
