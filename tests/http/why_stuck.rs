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

fn advises(cause: &Value, what: &str) -> bool {
    cause["next_action"].as_str().is_some_and(|text| text.contains(what))
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
    advertise(&story, 64, 1).await;
    let first = story.start([touch("a")]).await;
    let second = story.start([touch("b")]).await;
    assert_eq!(cause(&http, first).await, Value::Null);
    let held = cause(&http, second).await;
    assert_eq!(held["code"], "project_limit");
    let limits = |of: &str| held["detail"][of].clone();
    assert_eq!((limits("admitted_in_project"), limits("project_cap")), (json!(1), json!(1)), "{held}");
    assert_eq!((limits("admitted"), limits("window")), (json!(1), json!(128)), "{held}");
    assert!(advises(&held, "workflow.max_in_flight_per_project"), "{held}");
    assert!(!on_stuck_page(&http, second).await);
    story.advance(Duration::from_secs(120)).await;
    assert!(on_stuck_page(&http, second).await);
    let mut story = story;
    story.work();
    assert_eq!(story.ends(second).await, RunState::Succeeded);
    assert_eq!(cause(&http, second).await, Value::Null);
    story.end().await;
}

/// The project may have many more; raising its cap would help nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_finds_all_slots_taken_is_not_told_to_raise_its_projects_cap() {
    let story = Story::idle(quick(), None).await;
    let http = Http::over(&story).await;
    advertise(&story, 1, 1000).await;
    story.start([touch("a")]).await;
    story.start([touch("b")]).await;
    let held = cause(&http, story.start([touch("c")]).await).await;
    assert_eq!(held["code"], "project_limit");
    assert_eq!((&held["detail"]["admitted"], &held["detail"]["window"]), (&json!(2), &json!(2)), "{held}");
    assert_eq!(held["detail"]["project_cap"], 1000, "{held}");
    assert!(advises(&held, "engine.slots") && !advises(&held, "max_in_flight_per_project"), "{held}");
    let mut story = story;
    story.work();
    story.quiet().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admitted_run_that_nobody_takes_says_so_after_a_minute() {
    let story = Story::idle(quick(), None).await;
    let http = Http::over(&story).await;
    advertise(&story, 64, 1000).await;
    let run = story.start([touch("a")]).await;
    assert_eq!(cause(&http, run).await, Value::Null);
    assert!(!on_stuck_page(&http, run).await);
    story.advance(Duration::from_secs(61)).await;
    let held = cause(&http, run).await;
    assert_eq!(held["code"], "project_limit");
    assert_eq!(held["detail"]["waits_for"], "a free slot", "{held}");
    assert!(held["detail"]["queued_since"].is_string() && held["detail"]["due_since"].is_null(), "{held}");
    assert!(advises(&held, "engine.slots"), "{held}");
    assert!(on_stuck_page(&http, run).await);
    let mut story = story;
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_advised_to_cancel_what_cannot_be_cancelled() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    story.world.trouble("final", [Trouble::NeedsOperator]);
    story.world.trouble("back/undo", [Trouble::UndoHangs]);
    let before = story.start([hold("a"), touch("odd")]).await;
    let past = story.start([Do::Pivot, touch("final")]).await;
    let (waits, waits_past) =
        (story.start([Do::Wait(HOUR)]).await, story.start([Do::Pivot, Do::Wait(HOUR)]).await);
    for run in [before, past] {
        assert_eq!(story.settles(run).await, RunState::Paused);
    }
    for run in [waits, waits_past] {
        story.until(run, &[RunState::Waiting]).await;
        story.ask("pause", run).await.unwrap();
    }
    let undone = story.start([hold("back"), Do::Fail]).await;
    story.until_step(undone, "back", "compensating").await;
    story.ask("pause", undone).await.unwrap();
    story.until(undone, &[RunState::Paused]).await;
    for (run, code, may_be) in [
        (before, "retries_exhausted", true),
        (past, "retries_exhausted", false),
        (waits, "paused_by_operator", true),
        (waits_past, "paused_by_operator", false),
        (undone, "paused_by_operator", false),
    ] {
        let cause = cause(&http, run).await;
        assert_eq!(cause["code"], code);
        assert_eq!(advises(&cause, "or cancel it"), may_be, "{cause}");
        assert_eq!(story.ask("cancel", run).await.is_ok(), may_be, "{cause}");
    }
    story.ask("resume", undone).await.unwrap();
    assert_eq!(story.ends(undone).await, RunState::Compensated);
    story.quiet().await;
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

    advertise(&story, 64, 100).await;
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

/// A run that no drive of it gets anywhere with, because its input is none of its workflow's.
async fn plant_unreadable(story: &Story) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into engine.run (id, kind, version, project_id, correlation_id, input, wake_at)
         values ($1, 'test.script', 1, $2, 'c-planted', '{\"does\": 7}', engine.now())",
    )
    .bind(id)
    .bind(Uuid::from_u128(1))
    .execute(&story.pool)
    .await
    .unwrap();
    story.engine.wake();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_quarantined_is_found_by_its_cause() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let unreadable = plant_unreadable(&story).await;
    let changed = story.start([touch("a"), Do::Wait(HOUR)]).await;
    let changed_past = story.start([Do::Pivot, touch("a"), Do::Wait(HOUR)]).await;
    // As if the step had been given another input when it was done.
    let other_input = r#"update engine.journal
        set events = regexp_replace(events::text, '"hash":"[0-9a-f]+"', '"hash":"00"')::json
        where run_id = $1 and seq = 0"#;
    for run in [changed, changed_past] {
        story.until(run, &[RunState::Waiting]).await;
        sqlx::query(other_input).bind(run).execute(&story.pool).await.unwrap();
        story.signal(run, "word", "1", json!("go")).await;
    }
    for (run, code, may_be_cancelled) in [
        (unreadable, "crash_loop", false),
        (changed, "nondeterministic", true),
        (changed_past, "nondeterministic", false),
    ] {
        assert_eq!(story.settles(run).await, RunState::Paused);
        let cause = cause(&http, run).await;
        assert_eq!(cause["code"], code);
        assert_eq!(advises(&cause, "or cancel it"), may_be_cancelled, "{cause}");
        assert!(on_stuck_page(&http, run).await, "{code}");
    }
    story.end().await;
}

/// A living process that knows the test's workflow but drives nothing.
async fn advertise(story: &Story, slots: i32, project_cap: i64) {
    let id = Uuid::now_v7();
    sqlx::query(
        "with living as (insert into engine.incarnation (id, name, slots, expires_at, project_cap)
             values ($1, $1::text, $2, clock_timestamp() + interval '1 hour', $3) returning id)
         insert into engine.capability (incarnation_id, kind, version) select id, 'test.script', 1 from living",
    )
    .bind(id)
    .bind(slots)
    .bind(project_cap)
    .execute(&story.pool)
    .await
    .unwrap();
}
