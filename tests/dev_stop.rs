//! Stopping `gpuaas serve` while a step hangs: the first signal waits for it, the second does not, and nothing is lost.

use std::time::Duration;

use engine::RunState;
use uuid::Uuid;

use crate::support::cluster::Folder;
use crate::support::process::Serve;
use crate::support::story::{Story, quick};

/// Longer than the test may take: who waits for the drive to end waits in vain. The lease is short for the successor.
const PATIENT: &[&str] = &["--set", "engine.drain_ms=600000", "--set", "engine.lease_ms=1500"];

const CHECK: &str = "select last_run_id from engine.schedule where name = 'check_promises'";

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_process_whose_step_hangs_and_another_takes_over() {
    let story = Story::idle(quick(), None).await;
    let folder = Folder::new();
    // The nightly check reads this table, so it hangs for as long as we hold it.
    let mut held = story.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table engine.act in access exclusive mode").execute(&mut *held).await.unwrap();

    let mut first = Serve::workers(&folder.0, &story.database.url(), PATIENT);
    first.says("workers are ready");
    story.advance(Duration::from_secs(24 * 3600)).await;
    let begun = "select exists (select from engine.step where name = 'check_promises' and state = 'running')
        and $1::uuid is not null and $2::text[] is not null";
    story.until_true("the check has begun", begun, Uuid::nil(), &[]).await;
    let run: Uuid = sqlx::query_scalar(CHECK).fetch_one(&story.pool).await.unwrap();

    first.terminate();
    first.says("once more to stop without waiting");
    assert!(first.is_running(), "it waits for the step: {}", first.said());
    first.terminate();
    let (status, said) = first.ends();
    assert!(status.success(), "{said}");
    assert!(said.contains("stopped without waiting for open work"), "{said}");
    let left: bool = sqlx::query_scalar("select owner is not null from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert!(left, "it had no time to let go of its run");

    held.rollback().await.unwrap();
    let second = Serve::workers(&folder.0, &story.database.url(), PATIENT);
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let tries: Vec<String> =
        sqlx::query_scalar("select outcome from engine.try where run_id = $1 order by at")
            .bind(run)
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(tries.last().map(String::as_str), Some("succeeded"), "{tries:?}");
    second.terminate();
    let (status, said) = second.ends();
    assert!(status.success(), "{said}");
    story.end().await;
}
