//! Stopping. `gpuaas serve` while a step hangs: the first signal waits for it, the second does not, and nothing is lost.
//! `gpuaas dev` while it sets up: whatever it waits for, the first signal ends it and what it has started.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use engine::RunState;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgTransaction};
use uuid::Uuid;

use crate::dev_schema::MIGRATION_LOCK;
use crate::support::cluster::{Cluster, Folder};
use crate::support::process::{Serve, gpuaas, gpuaas_at_a_terminal};
use crate::support::story::{Story, quick};

/// Longer than the test may take: who waits for the drive to end waits in vain. The lease is short for the successor.
const PATIENT: &[&str] = &["--set", "engine.drain_ms=600000", "--set", "engine.lease_ms=1500"];

const CHECK: &str = "select last_run_id from engine.schedule where name = 'check_promises'";

/// The nightly check reads this table, so it hangs for as long as it is held.
async fn hold_the_check(story: &Story) -> PgTransaction<'static> {
    let mut held = story.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table engine.act in access exclusive mode").execute(&mut *held).await.unwrap();
    held
}

/// Its run.
async fn the_check_begins(story: &Story) -> Uuid {
    story.advance(Duration::from_secs(24 * 3600)).await;
    let begun = "select exists (select from engine.step where name = 'check_promises' and state = 'running')
        and $1::uuid is not null and $2::text[] is not null";
    story.until_true("the check has begun", begun, Uuid::nil(), &[]).await;
    sqlx::query_scalar(CHECK).fetch_one(&story.pool).await.unwrap()
}

/// Whether a process drives it, or died without letting go of it.
async fn is_driven(story: &Story, run: Uuid) -> bool {
    sqlx::query_scalar("select owner is not null from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap()
}

/// Looks until there is something to see.
fn eventually<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(seen) = seen() {
            return seen;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_process_whose_step_hangs_and_another_takes_over() {
    let story = Story::idle(quick(), None).await;
    let folder = Folder::new();
    let held = hold_the_check(&story).await;
    let mut first = Serve::workers(&folder.0, &story.database.url(), PATIENT);
    first.says("workers are ready");
    let run = the_check_begins(&story).await;

    first.terminate();
    first.says("once more to stop without waiting");
    assert!(first.is_running(), "it waits for the step: {}", first.said());
    first.terminate();
    let (status, said) = first.ends();
    assert!(status.success(), "{said}");
    assert!(said.contains("stopped without waiting for open work"), "{said}");
    assert!(is_driven(&story, run).await, "it had no time to let go of its run");

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

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_stops_a_process_in_order_however_often_it_says_so() {
    let story = Story::idle(quick(), None).await;
    let folder = Folder::new();
    let held = hold_the_check(&story).await;
    let url = story.database.url();
    let mut command = gpuaas_at_a_terminal(&["serve", "--workers-only", "--database-url", &url]);
    command.args(PATIENT);
    let mut serving = Serve::of(&folder.0, command);
    serving.says("workers are ready");
    let run = the_check_begins(&story).await;
    serving.signal("-HUP");
    serving.says("once more to stop without waiting");
    serving.signal("-HUP");
    // Time to end for one that would not wait.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(serving.is_running(), "it waits for the step: {}", serving.said());
    held.rollback().await.unwrap();
    let (status, said) = serving.ends();
    assert!(status.success() && !said.contains("stopped without waiting"), "{said}");
    assert!(!is_driven(&story, run).await, "it let go of its run");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_start_that_waits_for_another_migration() {
    let (server, folder) = (Cluster::start(), Folder::new());
    let mut other = PgConnectOptions::from_str(&server.url()).unwrap().connect().await.unwrap();
    sqlx::raw_sql(MIGRATION_LOCK).execute(&mut other).await.unwrap();
    let mut command = gpuaas(&["dev", "--port", "0", "--database-url", &server.url(), "--data-dir"]);
    command.arg(folder.0.join("data"));
    let mut starting = Serve::of(&folder.0, command);
    starting.says("waiting for another migration");
    starting.signal("-INT");
    let (status, said) = starting.ends();
    assert!(status.success(), "{said}");
}

#[test]
fn ctrl_c_ends_a_start_that_collects_the_registrys_garbage_and_the_collector() {
    let folder = Folder::new();
    let (data, tools, collecting) =
        (folder.0.join("data"), folder.0.join("tools"), folder.0.join("collecting"));
    fs::create_dir_all(data.join("registry/data")).unwrap();
    fs::create_dir(&tools).unwrap();
    let registry = tools.join("docker-registry");
    let script = format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", collecting.display());
    fs::write(&registry, script).unwrap();
    fs::set_permissions(&registry, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = gpuaas(&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()]);
    command.env("PATH", path);
    let mut starting = Serve::of(&folder.0, command);
    let collector = eventually("the collector begins", || {
        assert!(starting.is_running(), "{}", starting.said());
        let pid = fs::read_to_string(&collecting).ok()?;
        pid.ends_with('\n').then(|| pid.trim().to_owned())
    });
    starting.signal("-INT");
    let (status, said) = starting.ends();
    assert!(status.success(), "{said}");
    assert!(!data.join("postgres/postmaster.pid").exists(), "the database server is gone");
    // It has been killed; one that nobody has reaped yet has no command line.
    let words = format!("/proc/{collector}/cmdline");
    let gone = || !fs::read(&words).is_ok_and(|words| !words.is_empty());
    eventually("the collector is gone", || gone().then_some(()));
}
