//! Operators ask, drivers obey.

use std::time::Duration;

use engine::{OperateError, RunState, Settings, Start};

use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn pausing_a_busy_run_interrupts_it_and_resuming_goes_on() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Hang]);
    let run = story.start([touch("a"), hold("b"), touch("c")]).await;
    story.until_step(run, "b", "running").await;
    story.ask("pause", run).await.unwrap();
    story.until(run, &[RunState::Paused]).await;
    assert_eq!(story.cause(run).await.as_deref(), Some("paused_by_operator"));
    story.ask("resume", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pausing_a_waiting_run_acts_at_once_and_outlasts_its_timer() {
    let story = Story::new().await;
    let run = story.start([touch("a"), Do::Sleep(HOUR), touch("b")]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(story.ask("pause", run).await.unwrap().state, RunState::Paused);
    story.advance(Duration::from_millis(2 * HOUR)).await;
    // Another run's timer was due later and has fired, so this one's was passed over.
    let other = story.start([Do::Sleep(10)]).await;
    story.ends(other).await;
    assert_eq!(story.state(run).await, RunState::Paused);
    story.ask("resume", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_undoes_and_ends_cancelled_from_every_state() {
    let mut story = Story::new().await;
    let waiting = story.start([hold("a"), Do::Wait(HOUR)]).await;
    story.until(waiting, &[RunState::Waiting]).await;
    story.world.trouble("busy", [Trouble::Hang]);
    let busy = story.start([hold("a"), hold("busy")]).await;
    story.until_step(busy, "busy", "running").await;
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    let paused = story.start([hold("a"), touch("odd")]).await;
    story.until(paused, &[RunState::Paused]).await;
    for run in [waiting, busy, paused] {
        story.ask("cancel", run).await.unwrap();
        assert_eq!(story.ends(run).await, RunState::Cancelled);
        story.gave_everything_back(run).await;
    }
    story.rest().await;
    let queued = story.start([hold("a")]).await;
    story.ask("cancel", queued).await.unwrap();
    story.work();
    assert_eq!(story.ends(queued).await, RunState::Cancelled);
    assert!(matches!(story.ask("cancel", queued).await, Err(OperateError::Conflict { .. })));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_tries_a_run_can_be_cancelled() {
    let story = Story::new().await;
    story.world.trouble("busy", [Trouble::Retry]);
    let run = story.start([hold("a"), Do::Later("busy".into())]).await;
    story.until(run, &[RunState::Waiting]).await;
    assert_eq!(story.cause(run).await.as_deref(), Some("backoff"));
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_past_the_pivot_can_be_stopped_and_begin_again_when_resumed() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Terminal, Trouble::Terminal]);
    let run = story.start([Do::Pivot, touch("b")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);
    assert_eq!(story.ask("pause", run).await.unwrap().state, RunState::Paused);
    assert_eq!(story.cause(run).await.as_deref(), Some("paused_by_operator"));
    story.advance(2 * quick().slow_retry).await;
    // Another run's timer was due later and has fired, so this one's is gone.
    let other = story.start([Do::Sleep(10)]).await;
    story.ends(other).await;
    assert_eq!(story.steps(run).await, ["touch/b failed 1 0"]);
    let again = story.ask("pause", run).await;
    assert!(matches!(again, Err(OperateError::Conflict { .. })), "there is nothing left to stop: {again:?}");

    story.ask("resume", run).await.unwrap();
    assert_eq!(story.settles(run).await, RunState::Paused);
    assert_eq!(story.cause(run).await.as_deref(), Some("retries_exhausted"));
    story.advance(quick().slow_retry).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

/// Its time came, but nobody has taken it yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_past_the_pivot_that_was_admitted_can_be_stopped_too() {
    let mut story = Story::new().await;
    story.world.trouble("b", [Trouble::Terminal]);
    let run = story.start([Do::Pivot, touch("b")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);
    story.rest().await;
    let admitted = "with job as (insert into apalis.jobs (id, job_type, job, run_at)
             values ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'drive', convert_to($1::text, 'UTF8'), now()) returning id)
         update engine.run set wake_at = null, queued_job = job.id, queued_at = engine.now() from job where run.id = $1";
    sqlx::query(admitted).bind(run).execute(&story.pool).await.unwrap();
    assert_eq!(story.ask("pause", run).await.unwrap().state, RunState::Paused);
    let jobs: i64 =
        sqlx::query_scalar("select count(*) from apalis.jobs").fetch_one(&story.pool).await.unwrap();
    assert_eq!((story.cause(run).await.as_deref(), jobs), (Some("paused_by_operator"), 0));
    story.work();
    story.ask("resume", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_undone_already_is_not_cancelled_but_goes_on_being_undone() {
    let story = Story::new().await;
    story.world.trouble("a/undo", [Trouble::UndoHangs]);
    let run = story.start([hold("a"), Do::Fail]).await;
    story.until_step(run, "a", "compensating").await;
    let refused = story.ask("cancel", run).await;
    assert!(
        matches!(&refused, Err(OperateError::Conflict { why, .. }) if why.contains("already being undone"))
    );
    story.world.gate.add_permits(1);
    assert_eq!(story.ends(run).await, RunState::Compensated);

    story.world.trouble("b/undo", [Trouble::UndoFails]);
    let stuck = story.start([hold("b"), Do::Fail]).await;
    assert_eq!(story.settles(stuck).await, RunState::Stuck);
    assert!(matches!(story.ask("cancel", stuck).await, Err(OperateError::Conflict { .. })));
    story.ask("retry", stuck).await.unwrap();
    assert_eq!(story.ends(stuck).await, RunState::Compensated);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_a_run_from_an_owner_that_was_heard_of_just_now() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("b")]).await;
    story.until_step(run, "b", "running").await;
    let refused = story.ask("force", run).await;
    let Err(OperateError::Conflict { state: RunState::Running, why, .. }) = &refused else {
        panic!("{refused:?}")
    };
    for part in ["its owner spoke", "after 30 s of silence", "ask again in"] {
        assert!(why.contains(part), "{why}");
    }
    story.world.gate.add_permits(1);
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let refused = story.ask("force", run).await;
    let nobody = |why: &str| why.contains("nobody drives it");
    assert!(matches!(&refused, Err(OperateError::Conflict { why, .. }) if nobody(why)), "{refused:?}");
    assert_eq!(story.effects(run).await.len(), 2);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_for_a_person_pauses_and_retry_goes_on_from_the_failed_step() {
    let story = Story::new().await;
    story.world.trouble("b", [Trouble::NeedsOperator]);
    let run = story.start([touch("a"), touch("b"), touch("c")]).await;
    assert_eq!(story.settles(run).await, RunState::Paused);
    story.ask("retry", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    assert_eq!(
        story.steps(run).await,
        ["touch/a succeeded 1 0", "touch/b succeeded 2 0", "touch/c succeeded 1 0"]
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retrying_a_finished_run_starts_another_that_says_so() {
    let story = Story::new().await;
    story.world.trouble("a", [Trouble::Terminal]);
    let run = story.start([touch("a")]).await;
    assert_eq!(story.ends(run).await, RunState::Failed);
    let again = story.ask("retry", run).await.unwrap();
    assert_ne!(again.id, run);
    assert_eq!(story.ends(again.id).await, RunState::Succeeded);
    assert_eq!(story.state(run).await, RunState::Failed, "a terminal state never changes");
    let retry_of: Option<uuid::Uuid> = sqlx::query_scalar("select retry_of from engine.run where id = $1")
        .bind(again.id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(retry_of, Some(run));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_itself_refuses_to_change_a_terminal_run() {
    let story = Story::new().await;
    let run = story.start([touch("a")]).await;
    story.ends(run).await;
    let changed = sqlx::query("update engine.run set state = 'running', finished_at = null where id = $1")
        .bind(run)
        .execute(&story.pool)
        .await;
    assert!(changed.is_err());
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_does_not_end_in_time_is_cut_when_its_process_stops() {
    let mut story = Story::with(Settings { drain: Duration::from_millis(200), ..quick() }, None).await;
    story.world.trouble("slow", [Trouble::Hang]);
    let run = story.start([hold("a"), touch("slow")]).await;
    story.until_step(run, "slow", "running").await;
    story.rest().await;
    let owned: bool = sqlx::query_scalar("select owner is not null from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert!(!owned, "{}", story.describe(run).await);
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    story.end().await;
}

/// Asked for through another process, in the last moment: its driver has heard nothing when it comes to the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_was_accepted_is_obeyed_even_at_the_end() {
    // Nobody reads requests from the rows meanwhile, so that a driver learns of it by its last write.
    let story = Story::with(Settings { reap_every: Duration::from_secs(60), ..quick() }, None).await;
    let asks = "create function ask_to_cancel() returns trigger language plpgsql as $$ begin
            update engine.run set request = 'cancel', cancelling = true where id = new.run_id;
            insert into engine.act (id, run_id, act, actor, correlation_id)
                values (gen_random_uuid(), new.run_id, 'cancel', 'operator', 'c-operator');
            return null; end $$;
        create trigger ask_to_cancel after insert on engine.journal for each row when (new.seq = 0)
            execute function ask_to_cancel()";
    sqlx::raw_sql(asks).execute(&story.pool).await.unwrap();
    for (key, target) in [("a", None), ("b", Some("x".to_owned()))] {
        let run = story.start_as([hold(key)], Start { target, ..start() }).await.unwrap().id;
        assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
        story.gave_everything_back(run).await;
    }
    sqlx::raw_sql("drop trigger ask_to_cancel on engine.journal").execute(&story.pool).await.unwrap();
    story.end().await;
}
