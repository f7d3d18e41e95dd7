//! Two askers, one run: whoever comes first, nobody is forgotten and nothing turns in circles.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use engine::{OperateError, RunState, Start, StartError};
use uuid::Uuid;

use crate::support::failing::when;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

fn on(target: &str) -> Start {
    Start { target: Some(target.into()), ..start() }
}

fn taking_over(target: &str) -> Start {
    Start { supersede: true, ..on(target) }
}

/// The most runs that ever held one target and had an owner at one moment.
async fn most_holders(story: &Story, done: &tokio_util::sync::CancellationToken) -> i64 {
    let mut most = 0;
    while !done.is_cancelled() {
        let now: Option<i64> = sqlx::query_scalar(
            "select max(n) from (select count(*) as n from engine.run
                 where target is not null and owner is not null group by target) live",
        )
        .fetch_one(&story.pool)
        .await
        .unwrap();
        most = most.max(now.unwrap_or(0));
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_actions_every_target_ends_with_the_one_that_takes_over() {
    let story = Story::new().await;
    let done = tokio_util::sync::CancellationToken::new();
    let race = async {
        let pairs = (0..short_or_slow(100, 500)).map(|n| {
            let (story, target) = (&story, format!("t{n}"));
            async move {
                let upgrade =
                    story.start_as([hold("a"), Do::Sleep(n % 7), hold("b"), touch("c")], on(&target));
                let removal =
                    story.start_as([touch("gone"), Do::Sleep(1), touch("really")], taking_over(&target));
                tokio::join!(upgrade, removal)
            }
        });
        let pairs = futures::future::join_all(pairs).await;
        for (upgrade, removal) in pairs {
            let removal = removal.expect("taking over is always accepted");
            assert_eq!(story.ends(removal.id).await, RunState::Succeeded);
            match upgrade {
                Err(StartError::TargetBusy(holder)) => assert_eq!(holder.id, removal.id),
                Err(other) => panic!("{other}"),
                Ok(upgrade) => {
                    let ended = story.ends(upgrade.id).await;
                    assert!(
                        matches!(ended, RunState::Cancelled | RunState::Succeeded),
                        "{}",
                        story.describe(upgrade.id).await
                    );
                }
            }
        }
        done.cancel();
    };
    let (most, ()) = tokio::join!(most_holders(&story, &done), race);
    assert_eq!(most, 1, "never two live holders of one target");
    story.end().await;
}

/// The driver stands at the place while the cancel is accepted, and until this is over. Answers the run, which has ended.
async fn cancelled_at(place: &'static str, does: Vec<Do>, then: impl AsyncFnOnce(&Story)) -> (Story, Uuid) {
    let (reached, at_the_pivot) = channel();
    let (go_on, going_on) = channel::<()>();
    let (reached, going_on) = (Mutex::new(Some(reached)), Mutex::new(going_on));
    let faults = when(move |point| {
        let here = point.to_string() == place;
        if let Some(reached) = here.then(|| reached.lock().unwrap().take()).flatten() {
            reached.send(()).unwrap();
            let cancelled = || going_on.lock().unwrap().recv_timeout(Duration::from_secs(20));
            tokio::task::block_in_place(cancelled).expect("the cancel was accepted meanwhile");
        }
        None
    });
    let story = Story::with(quick(), faults).await;
    let run = story.start(does).await;
    tokio::task::spawn_blocking(move || at_the_pivot.recv_timeout(Duration::from_secs(20)))
        .await
        .unwrap()
        .unwrap();
    story.ask("cancel", run).await.expect("the run may still be cancelled");
    then(&story).await;
    go_on.send(()).unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled, "{place}: {}", story.describe(run).await);
    (story, run)
}

/// Between `pivot()` and the commit that makes it durable.
async fn cancelled_at_the_pivot(place: &'static str, next: Do) {
    let does = vec![hold("a"), Do::Pivot, next, touch("last")];
    let (story, run) = cancelled_at(place, does, async |_| ()).await;
    story.gave_everything_back(run).await;
    assert_eq!(story.effects(run).await.len(), 1, "{place}: nothing was begun past the pivot");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_is_accepted_at_the_pivot_is_obeyed() {
    cancelled_at_the_pivot("test.script/touch/do/before-commit", touch("b")).await;
    cancelled_at_the_pivot("test.script/write/do/before-commit", Do::Write("b".into())).await;
    cancelled_at_the_pivot("test.script/word/do/before-rest", Do::Wait(HOUR)).await;
    cancelled_at_the_pivot("test.script/test.child/do/before-commit", Do::Child(vec![touch("b")])).await;
}

/// A process passes requests on to its drivers, and then acts on those of runs without one. When it has come to the second of
/// these, it has passed on everything that was asked before the first.
async fn until_drivers_have_heard(story: &Story) {
    let left_to_nobody = "with asked as (insert into engine.act (id, run_id, act, actor, correlation_id)
            values (gen_random_uuid(), $1, 'cancel', 'somebody', 'c-test'))
        update engine.run set request = 'cancel' where id = $1";
    for _ in 0..2 {
        let other = story.start([hold("other"), Do::Wait(HOUR)]).await;
        story.until(other, &[RunState::Waiting]).await;
        sqlx::query(left_to_nobody).bind(other).execute(&story.pool).await.unwrap();
        story.engine.wake();
        assert_eq!(story.ends(other).await, RunState::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_is_accepted_before_the_first_step_undoes_that_and_no_other() {
    let place = "test.script//do/after-claim";
    let (story, run) = cancelled_at(place, vec![hold("a"), hold("b")], until_drivers_have_heard).await;
    assert_eq!(story.steps(run).await, ["hold/a compensated 1 1"]);
    assert_eq!(story.effects(run).await, [], "it was never taken");
    story.end().await;
    let (story, run) = cancelled_at(place, vec![touch("a"), hold("b")], until_drivers_have_heard).await;
    assert_eq!(story.steps(run).await, [""; 0], "there is nothing to undo in it");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_follows_a_cancel_is_refused_and_the_cancel_stands() {
    let story = Story::new().await;
    story.world.trouble("slow", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("slow"), hold("c")]).await;
    story.until_step(run, "slow", "running").await;
    // Both are asked before the driver hears of either.
    let mut tx = story.pool.begin().await.unwrap();
    let by = crate::support::story::operator();
    story.engine.cancel(&mut tx, run, &by).await.unwrap();
    let paused = story.engine.pause(&mut tx, run, &by).await;
    tx.commit().await.unwrap();
    assert!(matches!(paused, Err(OperateError::Conflict { .. })), "{paused:?}");
    assert_eq!(story.ends(run).await, RunState::Cancelled, "the cancel was accepted and is not forgotten");
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_whose_undo_sticks_still_ends_cancelled() {
    let story = Story::new().await;
    story.world.trouble("a/undo", [Trouble::UndoFails]);
    let run = story.start([hold("a"), Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.settles(run).await, RunState::Stuck);
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_a_waiting_successor_does_not_hold_up_the_holder() {
    let story = Story::new().await;
    story.world.trouble("busy", [Trouble::Hang]);
    let holder = story.start_as([hold("a"), hold("busy")], on("x")).await.unwrap();
    story.until_step(holder.id, "busy", "running").await;
    // One transaction, so that the holder cannot end in between.
    let mut tx = story.pool.begin().await.unwrap();
    let script = crate::support::world::Script { does: vec![touch("gone")] };
    let mut successor = story.engine.start(&mut tx, &script, taking_over("x")).await.unwrap();
    let paused = story.engine.pause(&mut tx, successor.id, &crate::support::story::operator()).await;
    tx.commit().await.unwrap();
    successor.begin();
    assert_eq!(story.ends(holder.id).await, RunState::Cancelled);
    assert_eq!(paused.unwrap().state, RunState::Paused);
    assert_eq!(story.state(successor.id).await, RunState::Paused, "the target is free and it still rests");
    story.ask("resume", successor.id).await.unwrap();
    assert_eq!(story.ends(successor.id).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_who_all_ask_at_once_leave_one_clear_outcome() {
    let story = Story::new().await;
    let runs: Vec<Uuid> = futures::future::join_all(
        (0..50).map(|_| story.start([hold("a"), Do::Sleep(20), hold("b"), touch("c")])),
    )
    .await;
    let acts = runs.iter().flat_map(|run| ["pause", "cancel", "resume", "pause"].map(|act| (act, *run)));
    futures::future::join_all(acts.map(|(act, run)| {
        let story = &story;
        async move { story.ask(act, run).await.is_ok() }
    }))
    .await;
    for run in runs {
        while story.settles(run).await == RunState::Paused {
            let _ = story.ask("resume", run).await;
        }
        let cancels: i64 =
            sqlx::query_scalar("select count(*) from engine.act where run_id = $1 and act = 'cancel'")
                .bind(run)
                .fetch_one(&story.pool)
                .await
                .unwrap();
        let expected = if cancels > 0 { RunState::Cancelled } else { RunState::Succeeded };
        assert_eq!(story.ends(run).await, expected, "{}", story.describe(run).await);
    }
    story.end().await;
}
