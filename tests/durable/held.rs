//! Somebody holds a run's row for long: a person's session, a process that hangs in its transaction. That run waits; everybody
//! else is started, claimed, driven and recovered as ever.

use std::time::Duration;

use engine::{RunState, Settings};
use sqlx::{PgTransaction, Postgres, Transaction};
use uuid::Uuid;

use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

const NEIGHBOURS: usize = 40;

/// What waits longer than this for a lock gives up.
fn impatient() -> Settings {
    Settings {
        lock_timeout: Duration::from_millis(200),
        pressure_after: Duration::from_millis(400),
        ..quick()
    }
}

async fn held(story: &Story, run: Uuid) -> Transaction<'static, Postgres> {
    let mut tx: PgTransaction<'static> = story.pool.begin().await.unwrap();
    sqlx::query("select from engine.run where id = $1 for update").bind(run).execute(&mut *tx).await.unwrap();
    tx
}

/// Started, driven through every kind of write and ended, all while the row is held. None is refused.
async fn neighbours_go_on(story: &Story) {
    let mut runs = Vec::new();
    for _ in 0..NEIGHBOURS {
        let does = [hold("n"), Do::Write("w".into()), Do::Sleep(1), Do::Child(vec![touch("in")])];
        runs.push(story.start(does).await);
    }
    for run in runs {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_waits_for_its_row_keeps_nobody_elses_waiting() {
    let story = Story::with(impatient(), None).await;
    story.world.trouble("a", [Trouble::Hang]);
    let run = story.start([hold("a"), touch("b")]).await;
    story.until_step(run, "a", "running").await;
    let tx = held(&story, run).await;
    story.world.gate.add_permits(1);
    neighbours_go_on(&story).await;
    assert_eq!(story.state(run).await, RunState::Running, "it waits");
    tx.rollback().await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

/// Those come after each other: effects in our own database, and what ends a run that others care for.
#[tokio::test(flavor = "multi_thread")]
async fn neither_does_a_transaction_of_its_own() {
    let story = Story::with(impatient(), None).await;
    story.world.trouble("a", [Trouble::Hang]);
    let run = story.start([hold("a"), Do::Write("w".into())]).await;
    story.until_step(run, "a", "running").await;
    let tx = held(&story, run).await;
    story.world.gate.add_permits(1);
    neighbours_go_on(&story).await;
    tx.rollback().await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_due_and_cannot_be_admitted_or_claimed_keeps_nobody_from_it() {
    let mut story = Story::with(impatient(), None).await;
    let (asleep, queued) =
        (story.start([Do::Sleep(3_600_000)]).await, story.start([Do::Wait(3_600_000)]).await);
    for run in [asleep, queued] {
        story.until(run, &[RunState::Waiting]).await;
    }
    // Admitted, and fetched by nobody yet.
    story.rest().await;
    story.signal(queued, "word", "1", serde_json::json!("go")).await;
    let (first, second) = (held(&story, asleep).await, held(&story, queued).await);
    story.work();
    story.advance(Duration::from_hours(2)).await;
    neighbours_go_on(&story).await;
    for (tx, run) in [(first, asleep), (second, queued)] {
        tx.rollback().await.unwrap();
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_left_is_recovered_but_for_the_run_whose_row_is_held() {
    let mut story = Story::with(impatient(), None).await;
    for key in ["a", "b"] {
        story.world.trouble(key, [Trouble::Hang]);
    }
    let (kept, other) = (story.start([hold("a")]).await, story.start([hold("b")]).await);
    for (run, key) in [(kept, "a"), (other, "b")] {
        story.until_step(run, key, "running").await;
    }
    // As a process that is gone leaves them: nobody drives, and its incarnation is known to be dead.
    let dead =
        sqlx::query("update engine.incarnation set expires_at = clock_timestamp() - interval '1 second'");
    let tx = held(&story, kept).await;
    dead.execute(&story.pool).await.unwrap();
    story.rest().await;
    story.work();
    assert_eq!(story.ends(other).await, RunState::Succeeded, "{}", story.describe(other).await);
    assert!(!story.state(kept).await.is_terminal());
    tx.rollback().await.unwrap();
    assert_eq!(story.ends(kept).await, RunState::Succeeded, "{}", story.describe(kept).await);
    story.end().await;
}
