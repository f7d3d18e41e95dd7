//! Random scripts, random trouble, random operators and random crashes from one seed: every run ends or rests with a
//! cause, and every promise holds. A failing seed says how to play it again.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use engine::{Settings, StartError, Strike};
use futures::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::json;
use uuid::Uuid;

use crate::support::failing::when;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const RUNS: usize = 6;

/// Each operation that has no key of its own occurs at most once.
fn script(rng: &mut StdRng, prefix: &str, may_nest: bool) -> Vec<Do> {
    let mut once = HashSet::new();
    let mut does = Vec::new();
    for n in 0..rng.random_range(1..7) {
        let kind = rng.random_range(0..8);
        if kind >= 4 && !once.insert(kind) {
            continue;
        }
        does.push(match kind {
            0 | 1 => touch(&format!("{prefix}{n}")),
            2 | 3 => hold(&format!("{prefix}{n}")),
            4 => Do::Write(format!("{prefix}{n}")),
            5 => Do::Sleep(rng.random_range(0..20)),
            6 => Do::Wait(3_600_000),
            7 if may_nest => Do::Child(script(rng, &format!("{prefix}c"), false)),
            _ => hold(&format!("{prefix}{n}x")),
        });
    }
    // Past its pivot a run that must fail waits for a person for ever, so it is one or the other.
    let alone = !does.iter().any(|one| matches!(one, Do::Child(_)));
    match rng.random_range(0..8) {
        0 | 1 => does.push(Do::Fail),
        2 if alone && may_nest => does.insert(rng.random_range(0..=does.len()), Do::Pivot),
        _ => {}
    }
    does
}

fn keys(does: &[Do]) -> Vec<String> {
    does.iter()
        .flat_map(|one| match one {
            Do::Touch(key) | Do::Hold(key) => vec![key.clone()],
            Do::Child(within) => keys(within),
            _ => vec![],
        })
        .collect()
}

fn make_trouble(rng: &mut StdRng, story: &Story, does: &[Do]) {
    for key in keys(does) {
        let trouble = match rng.random_range(0..14) {
            0 => vec![Trouble::Retry],
            1 => vec![Trouble::Retry, Trouble::Panic],
            2 => vec![Trouble::Terminal],
            3 => vec![Trouble::NeedsOperator],
            4 => vec![Trouble::HangAfter],
            _ => vec![],
        };
        story.world.trouble(&key, trouble);
        if rng.random_ratio(1, 12) {
            story.world.trouble(&format!("{key}/undo"), [Trouble::UndoFails]);
        }
    }
}

/// Strikes at random, seldom enough that every run gets through.
fn crashes(seed: u64) -> Option<std::sync::Arc<dyn engine::Faults>> {
    let rng = Mutex::new(StdRng::seed_from_u64(seed));
    when(move |_| rng.lock().unwrap().random_ratio(1, 25).then_some(Strike::Crash))
}

async fn simulate(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let settings = Settings { max_claims: 1000, slow_retry: Duration::from_secs(1), ..quick() };
    let story = Story::with(settings, crashes(seed)).await;
    let mut runs = Vec::new();
    for n in 0..RUNS {
        let does = script(&mut rng, &format!("r{n}-"), true);
        make_trouble(&mut rng, &story, &does);
        runs.push(accepted(&story, &does).await);
    }
    for _ in 0..rng.random_range(0..3 * RUNS) {
        let run = *runs.choose(&mut rng).unwrap();
        match rng.random_range(0..6) {
            0 => drop(story.signal(run, "word", &rng.random_range(0..3).to_string(), json!("go")).await),
            act => drop(story.ask(["pause", "resume", "retry", "cancel", "pause"][act - 1], run).await),
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..15))).await;
    }
    settle(&story, &runs).await;
    story.quiet().await;
    // The job of a run that was paused before anybody took it goes when a worker comes upon it.
    story
        .until_true(
            "no job is left that no run names",
            "select not exists (select 1 from apalis.jobs) and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
    story.end().await;
}

/// Where the machine is so busy that the database does not keep up, whoever asks comes again.
async fn accepted(story: &Story, does: &[Do]) -> Uuid {
    loop {
        match story.start_as(does, start()).await {
            Ok(started) => return started.id,
            Err(StartError::Pressure) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("the start is refused: {error}"),
        }
    }
}

/// Gives every waiting run its word, and every paused or stuck one a hand, until all have ended.
async fn settle(story: &Story, runs: &[Uuid]) {
    let done = async {
        loop {
            for run in runs {
                if !story.state(*run).await.is_terminal() {
                    story.signal(*run, "word", "last", json!("go")).await;
                }
            }
            let live: Vec<(Uuid, String, Option<String>)> =
                sqlx::query_as("select id, state, cause from engine.run where finished_at is null")
                    .fetch_all(&story.pool)
                    .await
                    .unwrap();
            if live.is_empty() {
                return;
            }
            for (run, state, cause) in live {
                if state == "paused" || state == "stuck" {
                    assert!(cause.is_some(), "rests without a cause: {}", story.describe(run).await);
                    let _ = story.ask("retry", run).await;
                }
                if cause.as_deref() == Some("waiting_signal") {
                    story.signal(run, "word", "last", json!("go")).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(60), done).await.is_err() {
        let mut left = String::new();
        for run in runs {
            if !story.state(*run).await.is_terminal() {
                left += &story.describe(*run).await;
            }
        }
        panic!("runs do not end:\n{left}");
    }
}

/// Seeds that are played at once: each mostly waits, for a lease, a timer or its database.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods)]
async fn whatever_happens_every_run_ends_and_every_promise_holds() {
    if let Ok(seed) = std::env::var("GPUAAS_SEED") {
        return simulate(seed.parse().expect("GPUAAS_SEED is a number")).await;
    }
    let base: u64 = rand::random_range(0..1_000_000_000);
    let played = stream::iter(base..base + short_or_slow(15, 2000))
        .map(|seed| async move { (seed, tokio::spawn(simulate(seed)).await.is_ok()) })
        .buffer_unordered(AT_ONCE);
    played
        .for_each(|(seed, well)| async move {
            assert!(well, "play it again: GPUAAS_SEED={seed} ./dev test simulate");
        })
        .await;
}
