//! A platform that cannot keep up says so, takes nothing it could not look after, and loses nothing it has.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::{Engine, Missed, Overlap, RunState, Schedule, Settings, StartError};
use serde_json::json;
use sqlx::PgTransaction;
use uuid::Uuid;

use super::{Http, admin, project};
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Script, touch};

const HOUR: u64 = 3_600_000;

async fn waiting(story: &Story) -> Uuid {
    let run = story.start([Do::Wait(HOUR), touch("after")]).await;
    story.until(run, &[RunState::Waiting]).await;
    run
}

/// Nobody can write to a journal while this lives; everything else works.
async fn stall_the_journal(story: &Story) -> PgTransaction<'static> {
    let mut tx = story.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table engine.journal in exclusive mode").execute(&mut *tx).await.unwrap();
    tx
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_does_not_keep_up_starts_are_refused_and_nothing_is_claimed() {
    let settings = Settings { pressure_after: Duration::from_millis(100), ..quick() };
    let story = Story::with(settings.clone(), None).await;
    let http = Http::over(&story).await;
    let finished = story.start([Do::Fail]).await;
    story.ends(finished).await;
    let (caught, left) = (waiting(&story).await, waiting(&story).await);

    let stalled = stall_the_journal(&story).await;
    story.signal(caught, "word", "1", json!("go")).await;
    until("the stall is noticed", async || story.engine.pressed()).await;
    let again = project(&format!("/workflows/{finished}/retry"));
    let refused = http.post(&again, json!({})).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.with(503)["code"], "service_unavailable");

    // A process that only answers requests learns it from those that drive.
    let elsewhere = Engine::new(story.database.options.clone(), settings);
    until("it is known elsewhere", async || {
        let mut tx = story.pool.begin().await.unwrap();
        let script = Script { does: vec![touch("b")] };
        matches!(elsewhere.start(&mut tx, &script, start()).await, Err(StartError::Pressure))
    })
    .await;
    elsewhere.close().await;

    story.signal(left, "word", "1", json!("go")).await;
    let path = admin(&format!("/workflows/{left}"));
    until("the cause is shown", async || {
        http.get(&path).await.with(200)["stuck_cause"]["code"] == "database_pressure"
    })
    .await;
    let shown = http.get(&path).await.with(200);
    assert!(shown["stuck_cause"]["detail"]["pressed_since"].is_string(), "{shown:#}");
    assert!(http.get(&admin("/workflows?cause=database_pressure")).await.ids().contains(&left));
    let owned: bool = sqlx::query_scalar("select owner is not null from engine.run where id = $1")
        .bind(left)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert!(!owned, "a run was claimed that nobody can write for");

    stalled.rollback().await.unwrap();
    for run in [caught, left] {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    until("starts are accepted again", async || http.post(&again, json!({})).await.status == 202).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_comes_while_the_database_does_not_keep_up_is_not_lost() {
    let settings = Settings { pressure_after: Duration::from_millis(100), ..quick() };
    let story = Story::with(settings, None).await;
    let hourly =
        Schedule { name: "hourly", cron: "0 0 * * * *", missed: Missed::One, overlap: Overlap::Skip };
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &hourly, &Script { does: vec![touch("a")] }).await.unwrap();
    drop(conn);
    let caught = waiting(&story).await;
    let stalled = stall_the_journal(&story).await;
    story.signal(caught, "word", "1", json!("go")).await;
    until("the stall is noticed", async || story.engine.pressed()).await;
    story.advance(Duration::from_secs(3600)).await;
    until("the reaper's thread has looked", async || {
        let ticks =
            sqlx::query_scalar::<_, i64>("select count(*) from engine.tick").fetch_one(&story.pool).await;
        assert_eq!(ticks.unwrap(), 0, "a tick was given up");
        story.engine.stats().pressed_for().is_some_and(|long| long > Duration::from_secs(1))
    })
    .await;
    stalled.rollback().await.unwrap();
    until("it fires", async || story.engine.stats().schedules_fired.load(Relaxed) == 1).await;
    story.ends(caught).await;
    story.quiet().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_too_many_waiting_runs_is_told_to_come_back_later() {
    let settings = Settings { project_backlog: 2, ..quick() };
    let mut story = Story::with(settings, None).await;
    let http = Http::over(&story).await;
    let finished = story.start([Do::Fail]).await;
    story.ends(finished).await;
    story.rest().await;
    // Places that were free a moment ago may still be given; then nobody is there to take what waits.
    let again = project(&format!("/workflows/{finished}/retry"));
    let mut accepted = 0;
    let refused = loop {
        let answer = http.post(&again, json!({})).await;
        match answer.status.as_u16() {
            202 => accepted += 1,
            _ => break answer,
        }
    };
    assert_eq!(refused.header("retry-after"), "5");
    assert_eq!(refused.with(429)["code"], "rate_limited");
    let waiting: i64 = sqlx::query_scalar("select count(*) from engine.run where finished_at is null")
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(waiting, accepted, "a refused start leaves nothing");
    story.work();
    story.quiet().await;
    story.end().await;
}
