//! Schedules can be looked at, run by hand, paused and resumed.

use engine::{Missed, Overlap, RunState, Schedule};
use serde_json::json;
use uuid::Uuid;

use super::{Http, admin};
use crate::support::story::Story;
use crate::support::world::{Script, touch};

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_listed_paused_resumed_and_run_by_hand() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let yearly =
        Schedule { name: "yearly", cron: "0 0 0 1 1 *", missed: Missed::Skip, overlap: Overlap::Queue };
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &yearly, &Script { does: vec![touch("a")] }).await.unwrap();
    drop(conn);

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
