//! Processes die at every point there is, and at random: nothing is lost, doubled or stranded.

use std::time::Duration;

use engine::RunState;
use rand::Rng;
use serde_json::json;

use super::targets::{on, taking_over};
use crate::support::outsider::{Blow, Orders, Outsider, obey_orders, short_lease};
use crate::support::slow::{is_slow, short_or_slow};
use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

/// Not a story: the worker process of the stories here and next door.
#[tokio::test(flavor = "multi_thread")]
async fn outsider() {
    obey_orders().await;
}

/// Everything a workflow can do, once.
fn everything() -> Vec<Do> {
    vec![
        touch("a"),
        hold("b"),
        Do::Write("c".into()),
        Do::Sleep(10),
        Do::Wait(HOUR),
        Do::Child(vec![touch("in"), hold("within")]),
        hold("d"),
    ]
}

async fn start_everything(story: &Story, fails: bool) -> uuid::Uuid {
    let mut does = everything();
    if fails {
        does.push(Do::Fail);
    }
    let run = story.start(does).await;
    story.signal(run, "word", "1", json!("go")).await;
    run
}

/// One process after the other dies at its point; each finds what those before it left behind. Then one lives.
async fn killed_at(points: &[&str], fails: bool) {
    let mut story = Story::idle(short_lease(), None).await;
    let mut runs = Vec::new();
    for point in points {
        runs.push(start_everything(&story, fails).await);
        let status = Outsider::start(&story.database, &Orders::strike(Blow::Kill, point)).dies().await;
        assert_eq!(status.code(), None, "the process was killed at {point}, not ended");
    }
    story.work();
    let expected = if fails { RunState::Compensated } else { RunState::Succeeded };
    for run in runs {
        assert_eq!(story.ends(run).await, expected, "{}", story.describe(run).await);
        let effects = story.effects(run).await;
        let names: Vec<&str> = effects.iter().map(|(step, ..)| step.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"], "one effect per step, each under one key");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_point_of_a_step_costs_nothing() {
    killed_at(
        &[
            "//do/before-claim",
            "test.script//do/after-claim",
            "test.script/touch/do/before-commit",
            "test.script/touch/do/after-commit",
            "test.script/touch/do/before-effect",
            "test.script/touch/do/after-effect",
            "test.script/hold/do/before-commit",
            "test.script/hold/do/after-commit",
            "test.script/hold/do/before-effect",
            "test.script/hold/do/after-effect",
        ],
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_point_of_a_transaction_or_a_child_costs_nothing() {
    killed_at(
        &[
            "test.script/write/do/before-commit",
            "test.script/write/do/before-effect",
            "test.script/write/do/after-effect",
            "test.script/write/do/after-commit",
            "test.script/test.child/do/before-commit",
            "test.child//do/after-claim",
            "test.child/touch/do/after-effect",
            "test.child/hold/do/before-commit",
        ],
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_point_of_an_undo_costs_nothing() {
    killed_at(
        &[
            "test.script/hold/undo/before-commit",
            "test.script/hold/undo/after-commit",
            "test.script/hold/undo/before-effect",
            "test.script/hold/undo/after-effect",
            "test.script/test.child/undo/before-effect",
            "test.script/test.child/undo/after-effect",
        ],
        true,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_pays_for_the_run_it_took_over_costs_nothing() {
    let mut story = Story::idle(short_lease(), None).await;
    let mut taken_over = Vec::new();
    for (n, point) in [
        "test.script/undo_of_superseded_run/do/before-commit",
        "test.script/undo_of_superseded_run/do/after-commit",
        "test.script/undo_of_superseded_run/do/before-effect",
        "test.script/undo_of_superseded_run/do/after-effect",
        "test.script/close_superseded_run/do/before-commit",
        "test.script/close_superseded_run/do/after-effect",
        "test.script/close_superseded_run/do/after-commit",
    ]
    .into_iter()
    .enumerate()
    {
        // A name for each round: the removal of the round before goes on beside it.
        let b = format!("b{n}");
        story.work();
        story.world.trouble(&format!("{b}/undo"), [Trouble::UndoFails]);
        let deploy = story.start_as([hold("a"), hold(&b), Do::Fail], on(point)).await.unwrap().id;
        assert_eq!(story.settles(deploy).await, RunState::Stuck);
        story.rest().await;
        let removal = story.start_as([touch("gone")], taking_over(point)).await.unwrap().id;
        let status = Outsider::start(&story.database, &Orders::strike(Blow::Kill, point)).dies().await;
        assert_eq!(status.code(), None, "the process was killed at {point}, not ended");
        taken_over.push((deploy, removal));
    }
    story.work();
    for (deploy, removal) in taken_over {
        assert_eq!(story.ends(removal).await, RunState::Succeeded, "{}", story.describe(removal).await);
        assert_eq!(story.state(deploy).await, RunState::Cancelled);
        story.gave_everything_back(deploy).await;
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_around_a_rest_costs_nothing() {
    let mut story = Story::idle(short_lease(), None).await;
    let mut runs = Vec::new();
    for point in ["test.script/word/do/before-rest", "test.script/word/do/after-rest"] {
        // No signal yet, so that the run really comes to rest.
        runs.push(story.start(everything()).await);
        let status = Outsider::start(&story.database, &Orders::strike(Blow::Kill, point)).dies().await;
        assert_eq!(status.code(), None, "the process was killed at {point}, not ended");
    }
    story.work();
    for run in runs {
        story.signal(run, "word", "1", json!("go")).await;
        assert_eq!(story.ends(run).await, RunState::Succeeded);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_kills_under_load_lose_double_and_strand_nothing() {
    let (kills, load) = short_or_slow((5, 100), (50, 2000));
    let story = Story::idle(short_lease(), None).await;
    let mut workers: Vec<Outsider> =
        (0..3).map(|_| Outsider::start(&story.database, &Orders::work())).collect();
    let mut runs = Vec::new();
    for kill in 0..kills {
        for n in 0..load / kills {
            runs.push((start_everything(&story, n % 3 == 0).await, n % 3 == 0));
        }
        let pause = Duration::from_millis(rand::rng().random_range(50..400));
        tokio::time::sleep(pause).await;
        // The one that dies may be driving, reaping, or both.
        workers[kill % 3] = Outsider::start(&story.database, &Orders::work());
    }
    for (run, fails) in runs {
        let expected = if fails { RunState::Compensated } else { RunState::Succeeded };
        assert_eq!(story.ends(run).await, expected, "{}", story.describe(run).await);
    }
    drop(workers);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_and_starting_workers_under_load_strands_nothing() {
    let mut story = Story::idle(quick(), None).await;
    let mut runs = Vec::new();
    for _ in 0..short_or_slow(40, 300) {
        story.work();
        for _ in 0..20 {
            runs.push(story.start([touch("a"), hold("b"), Do::Sleep(5), hold("c")]).await);
        }
        story.rest().await;
    }
    story.work();
    for run in runs {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_the_real_lease_the_last_orphan_goes_on_within_twenty_seconds() {
    if !is_slow() {
        return;
    }
    let mut story = Story::idle(quick(), None).await;
    let orders = Orders {
        lease: Duration::from_secs(15),
        ..Orders::strike(Blow::Kill, "test.script/hold/do/before-effect")
    };
    let run = start_everything(&story, false).await;
    Outsider::start(&story.database, &orders).dies().await;
    let died = std::time::Instant::now();
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert!(died.elapsed() < Duration::from_secs(20), "it took {:?}", died.elapsed());
    story.end().await;
}
