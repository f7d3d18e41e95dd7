//! Every run that does not advance says why, with evidence, what to do, and when the platform acts by itself.

use std::time::Duration;

use engine::{RunState, Settings, Start};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Http, admin};
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

/// The cause as the API shows it. The filter by its code must find the run, and only live runs may have one.
async fn cause(http: &Http, run: Uuid) -> Value {
    let shown = http.get(&admin(&format!("/workflows/{run}"))).await.with(200);
    let cause = shown["stuck_cause"].clone();
    if let Some(code) = cause["code"].as_str() {
        assert!(http.get(&admin(&format!("/workflows?cause={code}"))).await.ids().contains(&run), "{code}");
        assert!(cause["next_action"].as_str().is_some_and(|text| text.ends_with('.')), "{cause}");
        assert!(cause["detail"].is_object(), "{cause}");
    }
    cause
}

async fn on_stuck_page(http: &Http, run: Uuid) -> bool {
    http.get(&admin("/workflows/stuck")).await.ids().contains(&run)
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_that_end_by_themselves_are_named_and_not_alarming() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let signal = story.start([Do::Wait(HOUR)]).await;
    let timer = story.start([Do::Sleep(HOUR)]).await;
    let parent = story.start([Do::Child(vec![Do::Wait(HOUR)])]).await;
    story.until(parent, &[RunState::Waiting]).await;
    let child: Uuid = sqlx::query_scalar("select id from engine.run where parent_id = $1")
        .bind(parent)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    let named = cause(&http, parent).await["detail"].clone();
    assert_eq!((&named["run"], &named["kind"]), (&json!(child), &json!("test.child")), "{named}");
    for (run, code) in [(signal, "waiting_signal"), (timer, "waiting_timer"), (parent, "waiting_for_run")] {
        story.until(run, &[RunState::Waiting]).await;
        let cause = cause(&http, run).await;
        assert_eq!(cause["code"], code);
        assert!(!on_stuck_page(&http, run).await, "{code}");
    }
    assert!(cause(&http, timer).await["next_at"].is_string());
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_need_a_person_are_on_the_stuck_page() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    story.world.trouble("kept/undo", [Trouble::UndoFails]);
    let exhausted = story.start([touch("odd")]).await;
    let kept = story.start([hold("kept"), Do::Fail]).await;
    let paused = story.start([Do::Wait(HOUR)]).await;
    story.until(paused, &[RunState::Waiting]).await;
    story.ask("pause", paused).await.unwrap();
    for (run, state, code) in [
        (exhausted, RunState::Paused, "retries_exhausted"),
        (kept, RunState::Stuck, "undo_failed"),
        (paused, RunState::Paused, "paused_by_operator"),
    ] {
        assert_eq!(story.settles(run).await, state);
        assert_eq!(cause(&http, run).await["code"], code);
        assert!(on_stuck_page(&http, run).await, "{code}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_beyond_its_projects_limit_says_so_and_is_overdue_after_a_while() {
    let story = Story::idle(Settings { project_cap: 1, ..quick() }, None).await;
    let http = Http::over(&story).await;
    // Nobody works yet, so the first keeps the project's one place; some living process knows the workflow.
    advertise(&story).await;
    let first = story.start([touch("a")]).await;
    let second = story.start([touch("b")]).await;
    assert_eq!(cause(&http, first).await, Value::Null);
    let held = cause(&http, second).await;
    assert_eq!(held["code"], "project_limit");
    assert_eq!(held["detail"]["admitted_in_project"], 1);
    assert!(!on_stuck_page(&http, second).await);
    story.advance(Duration::from_secs(120)).await;
    assert!(on_stuck_page(&http, second).await);
    let mut story = story;
    story.work();
    assert_eq!(story.ends(second).await, RunState::Succeeded);
    assert_eq!(cause(&http, second).await, Value::Null);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_waits_for_the_run_it_names() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let about = |supersede| Start { target: Some("instance/1".into()), supersede, ..start() };
    story.world.trouble("busy", [Trouble::Hang]);
    let holder = story.start_as([Do::Pivot, touch("busy")], about(false)).await.unwrap().id;
    story.until_step(holder, "busy", "running").await;
    let successor = story.start_as([touch("b")], about(true)).await.unwrap().id;
    let waiting = cause(&http, successor).await;
    assert_eq!((&waiting["code"], &waiting["detail"]["run"]), (&json!("waiting_for_run"), &json!(holder)));
    story.world.gate.add_permits(1);
    assert_eq!(story.ends(successor).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_nobody_knows_and_a_run_whose_worker_died_are_told_apart() {
    let story = Story::idle(quick(), None).await;
    let http = Http::over(&story).await;
    let run = story.start([touch("a")]).await;
    let unknown = cause(&http, run).await;
    assert_eq!(unknown["code"], "unknown_version");
    assert_eq!(unknown["detail"]["living_processes"], 0);
    assert!(on_stuck_page(&http, run).await);

    advertise(&story).await;
    assert_ne!(cause(&http, run).await["code"], "unknown_version", "a living process knows it now");

    let dead = Uuid::now_v7();
    let expired = "insert into engine.incarnation (id, name, slots, expires_at)
                   values ($1, 'lost', 1, clock_timestamp() - interval '1 s')";
    sqlx::query(expired).bind(dead).execute(&story.pool).await.unwrap();
    sqlx::query("update engine.run set state = 'running', owner = $1 where id = $2")
        .bind(dead)
        .bind(run)
        .execute(&story.pool)
        .await
        .unwrap();
    let lost = cause(&http, run).await;
    assert_eq!((&lost["code"], &lost["detail"]["worker"]), (&json!("lease_lost"), &json!("lost")));
    assert!(lost["next_at"].is_string());
    let mut story = story;
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

/// A living process that knows the test's workflow but drives nothing.
async fn advertise(story: &Story) {
    let id = Uuid::now_v7();
    sqlx::query(
        "with living as (insert into engine.incarnation (id, name, slots, expires_at)
             values ($1, $1::text, 64, clock_timestamp() + interval '1 hour') returning id)
         insert into engine.capability (incarnation_id, kind, version) select id, 'test.script', 1 from living",
    )
    .bind(id)
    .execute(&story.pool)
    .await
    .unwrap();
}
