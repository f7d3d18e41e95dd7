//! The check of every promise over all of history, which the platform makes each night: a night on which they hold
//! succeeds, and one on which they do not says what is broken.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use activities::Env;
use engine::{RunState, Workers};
use uuid::Uuid;
use workflows::demo::Tour;

use crate::support::story::{Story, quick, start};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The platform's own workflows and schedules in place of the scripted ones.
async fn platform() -> (Story, Workers) {
    let story = Story::idle(quick(), None).await;
    workflows::declare_schedules(&story.engine).await.unwrap();
    let env = Arc::new(Env::new(story.engine.clone()));
    story.engine.also_promises(activities::promises::of_the_platform);
    let workers = Workers::start(&story.engine, env, workflows::registry());
    (story, workers)
}

/// A finished run, long enough ago that the check of the last minute does not look at it any more.
async fn old_run(story: &Story) -> Uuid {
    let tour = Tour { thing: "lamp".into(), busy_tries: 0, wait_seconds: 0, fits: true };
    let mut tx = story.pool.begin().await.unwrap();
    let mut started = story.engine.start(&mut tx, &tour, start()).await.unwrap();
    tx.commit().await.unwrap();
    started.begin();
    assert_eq!(story.ends(started.id).await, RunState::Succeeded);
    story.advance(HOUR).await;
    started.id
}

/// Lets a day pass; what became of the check it brought, and what that said.
async fn next_night(story: &Story) -> (RunState, String) {
    let last =
        "select coalesce(last_run_id, gen_random_uuid()) from engine.schedule where name = 'check_promises'";
    let before: Uuid = sqlx::query_scalar(last).fetch_one(&story.pool).await.unwrap();
    story.advance(DAY).await;
    let fired = "select last_run_id <> $1 and $2::text[] is not null from engine.schedule where name = 'check_promises'";
    story.until_true("the night's check began", fired, before, &[]).await;
    let check: Uuid = sqlx::query_scalar(last).fetch_one(&story.pool).await.unwrap();
    let state = story.ends(check).await;
    let said = sqlx::query_scalar("select coalesce(error::text, '') from engine.run where id = $1")
        .bind(check)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    (state, said)
}

/// Writes past the triggers, as only a superuser or a fault could.
async fn tamper(story: &Story, run: Uuid, holds_target: bool) {
    let mut tx = story.pool.begin().await.unwrap();
    sqlx::raw_sql("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
    let changed = sqlx::query("update engine.run set holds_target = $2 where id = $1")
        .bind(run)
        .bind(holds_target)
        .execute(&mut *tx)
        .await
        .unwrap();
    assert_eq!(changed.rows_affected(), 1);
    tx.commit().await.unwrap();
}

fn counted(story: &Story) -> u64 {
    story.engine.stats().promises_broken.load(Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_on_which_every_promise_holds_succeeds() {
    let (story, workers) = platform().await;
    old_run(&story).await;
    for _ in 0..2 {
        assert_eq!(next_night(&story).await, (RunState::Succeeded, String::new()));
    }
    assert_eq!(counted(&story), 0);
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_broken_long_ago_fails_the_night_until_it_is_mended() {
    let (story, workers) = platform().await;
    let run = old_run(&story).await;
    tamper(&story, run, true).await;
    let (state, said) = next_night(&story).await;
    assert_eq!(state, RunState::Failed);
    assert!(said.contains("promises_broken"), "{said}");
    assert!(said.contains(&format!("1 broken: P6: run {run} is succeeded but not at rest")), "{said}");
    assert_eq!(counted(&story), 1, "the night's check is the one that counts it");

    tamper(&story, run, false).await;
    assert_eq!(
        next_night(&story).await,
        (RunState::Succeeded, String::new()),
        "and the next night looks again"
    );
    workers.stop().await;
    story.end().await;
}
