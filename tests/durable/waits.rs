//! Sleeping, waiting for signals and for children: no worker is held, and no signal is lost.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::{Engine, RunState, Signalled};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::http::{Http, project};
use crate::lifecycle::wait_for;
use crate::support::failing::when;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_follows_the_database_clock() {
    let story = Story::new().await;
    let run = story.start([touch("a"), Do::Sleep(HOUR), touch("b")]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(story.cause(run).await.as_deref(), Some("waiting_timer"));
    story.advance(Duration::from_millis(HOUR - 60_000)).await;
    story.quiet().await;
    assert_eq!(story.state(run).await, RunState::Waiting, "not a minute early");
    story.advance(Duration::from_secs(61)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_wakes_the_run_and_its_copies_change_nothing() {
    let story = Story::new().await;
    let run = story.start([Do::Wait(HOUR), touch("a")]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(story.signal(run, "word", "1", json!("go")).await, Signalled::Kept);
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(story.signal(run, "word", "1", json!("go")).await, Signalled::Duplicate);
    assert_eq!(story.signal(run, "word", "2", json!("go")).await, Signalled::Late);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_before_its_wait_is_kept() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::Hang]);
    let run = story.start([touch("a"), Do::Wait(HOUR)]).await;
    story.until_step(run, "a", "running").await;
    story.signal(run, "word", "1", json!("early")).await;
    story.world.gate.add_permits(1);
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passed_deadline_unwinds() {
    let story = Story::new().await;
    let run = story.start([hold("a"), Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    story.advance(Duration::from_millis(HOUR + 1)).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    assert_eq!(story.signal(run, "word", "1", json!("too late")).await, Signalled::Late);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_or_signal_whichever_is_journaled_first_stands() {
    let story = Story::new().await;
    let races = short_or_slow(200, 1000);
    let starts = (0..races).map(|n| story.start([Do::WaitOrNot(n % 300)]));
    let runs = futures::future::join_all(starts).await;
    // Signals arrive while deadlines pass: each run must take exactly one of the two ways, and end.
    let signals = runs.iter().map(|run| story.signal(*run, "word", "1", json!("heard")));
    let sent = futures::future::join_all(signals).await;
    for (run, sent) in runs.iter().zip(sent) {
        assert_eq!(story.ends(*run).await, RunState::Succeeded);
        let effects = story.effects(*run).await;
        let ways: Vec<&str> = effects.iter().map(|(step, ..)| step.as_str()).collect();
        let taken: bool = sqlx::query_scalar(
            "select state = 'taken' from engine.signal where run_id = $1 and name = 'word'",
        )
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
        // A signal that was taken was heard, one that was not was not, and one that came late never is.
        assert_eq!(ways, [if taken { "heard" } else { "silence" }], "{}", story.describe(*run).await);
        assert!(!taken || sent == Signalled::Kept, "{sent:?}");
    }
    story.end().await;
}

/// Between the claim that the deadline brought and the checkpoint that would say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_while_the_deadline_is_dealt_with_came_first() {
    let sender: Arc<OnceLock<(Engine, PgPool, Uuid)>> = Arc::default();
    let told = Arc::clone(&sender);
    let tell_once = when(move |point| {
        if let Some((engine, pool, run)) = told.get().filter(|_| point.place == "before-wait") {
            wait_for(async {
                let mut tx = pool.begin().await.unwrap();
                engine.signal(&mut tx, *run, "word", "1", &json!("heard")).await.unwrap();
                tx.commit().await.unwrap();
            });
        }
        None
    });
    let story = Story::with(quick(), tell_once).await;
    let run = story.start([Do::WaitOrNot(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    sender.set((story.engine.clone(), story.pool.clone(), run)).ok().unwrap();
    story.advance(Duration::from_millis(HOUR + 1)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let ways: Vec<String> = story.effects(run).await.into_iter().map(|(step, ..)| step).collect();
    assert_eq!((ways, signals(&story, run).await), (vec!["heard".to_owned()], vec!["taken".to_owned()]));
    story.end().await;
}

async fn signals(story: &Story, run: Uuid) -> Vec<String> {
    sqlx::query_scalar("select state from engine.signal where run_id = $1")
        .bind(run)
        .fetch_all(&story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_too_late_is_shown_with_the_run() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::WaitOrNot(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(story.signal(run, "unasked", "1", json!({"password": "x"})).await, Signalled::Kept);
    let shown = async || http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    assert_eq!(shown().await["late_signals_total"], 0, "somebody may still wait for it");
    story.advance(Duration::from_millis(HOUR + 1)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(story.signal(run, "word", "2", json!("too late")).await, Signalled::Late);
    let run_shown = shown().await;
    assert_eq!(run_shown["late_signals_total"], 2);
    let late = run_shown["late_signals"].as_array().unwrap();
    let said: Vec<(&Value, &Value)> = late.iter().map(|one| (&one["name"], &one["key"])).collect();
    assert_eq!(said, [(&json!("unasked"), &json!("1")), (&json!("word"), &json!("2"))]);
    assert_eq!(late[1]["payload"], "too late");
    assert_ne!(late[0]["payload"]["password"], "x", "secrets are hidden here too");
    story
        .until_true(
            "what nobody took is marked as late",
            "select bool_and(state = 'late') and $2::text[] is not null from engine.signal where run_id = $1",
            run,
            &[],
        )
        .await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_signal_is_lost_between_looking_and_resting() {
    let story = Story::new().await;
    let runs = futures::future::join_all((0..300).map(|_| story.start([touch("a"), Do::Wait(HOUR)]))).await;
    // Sent at once, so many land just as their run goes to rest.
    futures::future::join_all(runs.iter().map(|run| story.signal(*run, "word", "1", json!(1)))).await;
    for run in runs {
        assert_eq!(story.ends(run).await, RunState::Succeeded);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_runs_to_its_end_and_its_parent_goes_on() {
    let story = Story::new().await;
    let run =
        story.start([touch("before"), Do::Child(vec![touch("in"), Do::Sleep(10)]), touch("after")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let children: i64 =
        sqlx::query_scalar("select count(*) from engine.run where parent_id = $1 and state = 'succeeded'")
            .bind(run)
            .fetch_one(&story.pool)
            .await
            .unwrap();
    assert_eq!(children, 1);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_parent_cancels_its_child_and_waits_for_it() {
    let story = Story::new().await;
    let run = story.start([hold("mine"), Do::Child(vec![hold("its"), Do::Wait(HOUR)])]).await;
    story.until(run, &[RunState::Waiting]).await;
    story.until_true(
        "the child waits",
        "select exists (select 1 from engine.run where parent_id = $1 and state = 'waiting' and owner is null) and $2::text[] is not null",
        run,
        &[],
    )
    .await;
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    let (child, held): (String, bool) = sqlx::query_as(
        "select r.state, e.held from engine.run r join effect e on e.run = r.id where r.parent_id = $1",
    )
    .bind(run)
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert_eq!((child.as_str(), held), ("cancelled", false));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_cancelled_itself_turns_its_parent_back() {
    let story = Story::new().await;
    let run = story.start([hold("mine"), Do::Child(vec![hold("its"), Do::Wait(HOUR)])]).await;
    story.until(run, &[RunState::Waiting]).await;
    let child = sqlx::query_scalar("select id from engine.run where parent_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    story.until(child, &[RunState::Waiting]).await;
    story.ask("cancel", child).await.unwrap();
    assert_eq!(story.ends(child).await, RunState::Cancelled);
    story.gave_everything_back(child).await;
    assert_eq!(story.ends(run).await, RunState::Compensated, "{}", story.describe(run).await);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_child_unwound_is_what_its_parent_fails_with() {
    let story = Story::new().await;
    story.world.trouble("in", [Trouble::Terminal]);
    let run = story.start([hold("mine"), Do::Child(vec![hold("its"), touch("in")])]).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    let (of_child, of_parent): (String, String) = sqlx::query_as(
        "select c.error ->> 'message', p.error ->> 'message' from engine.run c join engine.run p on p.id = c.parent_id
         where p.id = $1",
    )
    .bind(run)
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(of_parent.ends_with(&format!("ended compensated: {of_child}")), "{of_parent}");
    story.end().await;
}
