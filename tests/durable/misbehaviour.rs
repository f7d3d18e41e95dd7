//! Code that misbehaves: it panics, blocks, kills its process or never ends. It is stopped under a name, and the
//! neighbours do not notice.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use engine::{
    Activity, Call, Fault, Halt, PlannedStep, Registry, Run, RunState, Settings, Workers, Workflow,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::poison::{neighbours_succeed, quarantined, sticks};
use crate::support::failing::crash_at;
use crate::support::story::{Story, quick, start};
use crate::support::world::{Child, Do, Script, World, hold, touch};

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_panics_is_quarantined_after_a_few_claims() {
    let story = Story::with(Settings { max_claims: 3, ..quick() }, None).await;
    let run = story.start([touch("a"), Do::PanicHere]).await;
    let settled = async {
        while !story.state(run).await.is_settled() {
            story.advance(Duration::from_secs(1)).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("the loop is noticed");
    quarantined(&story, run, "crash_loop").await;
    neighbours_succeed(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_kills_its_worker_every_time_is_quarantined() {
    let story = Story::with(quick(), crash_at("test.child/touch/do/before-effect")).await;
    let child = Child { does: vec![touch("deadly")] };
    let run = story.start_workflow(&child, start()).await.unwrap().id;
    quarantined(&story, run, "crash_loop").await;
    neighbours_succeed(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_crash_loop_can_be_cancelled() {
    let story = Story::with(quick(), crash_at("test.child/touch/do/before-effect")).await;
    let child = Child { does: vec![hold("a"), touch("deadly")] };
    let run = story.start_workflow(&child, start()).await.unwrap().id;
    quarantined(&story, run, "crash_loop").await;
    story.ask("cancel", run).await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
    story.gave_everything_back(run).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_kills_its_worker_every_time_sticks() {
    let story = Story::with(quick(), crash_at("test.child/hold/undo/before-effect")).await;
    let child = Child { does: vec![hold("deadly"), Do::Fail] };
    let run = story.start_workflow(&child, start()).await.unwrap().id;
    sticks(&story, run, "crash_loop").await;
    neighbours_succeed(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_workflow_ends_at_the_journals_limit() {
    let story = Story::with(Settings { max_journal_rows: 40, ..quick() }, None).await;
    let run = story.start([hold("first"), Do::Endless]).await;
    assert_eq!(story.ends(run).await, RunState::Compensated);
    assert_eq!(story.steps(run).await.len(), 40);
    neighbours_succeed(&story).await;
    story.end().await;
}

/// Where threads are held that nobody can cancel.
struct Latch(Mutex<bool>, Condvar);

static LET_GO: Latch = Latch(Mutex::new(false), Condvar::new());

impl Latch {
    fn wait(&self) {
        let mut open = self.0.lock().unwrap();
        while !*open {
            open = self.1.wait(open).unwrap();
        }
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

/// However the test ends, its threads do too.
struct LetGo;

impl Drop for LetGo {
    fn drop(&mut self) {
        LET_GO.open();
    }
}

/// Whether a workflow hung before its first step already.
static HUNG: AtomicBool = AtomicBool::new(false);

/// Misbehaves in ways that an async function cannot be cancelled out of.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rude {
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Way {
    BlocksOnce,
    BlocksAlways,
    HangsFirst,
    UndoPanics,
    NulOutput,
    HugeOutput,
    NulError,
    NulKey,
}

impl Activity for Rude {
    const NAME: &'static str = "rude";
    const TIMEOUT: Duration = Duration::from_millis(200);
    const UNDO: bool = true;
    type Env = World;
    type Output = String;

    async fn run(&self, _: &World, call: &Call) -> Result<String, Fault> {
        match self.way {
            // No await: the timeout cannot fire while this sits on its thread.
            Way::BlocksOnce if call.attempt == 1 => std::thread::sleep(Duration::from_secs(4)),
            Way::BlocksAlways => LET_GO.wait(),
            Way::NulOutput => return Ok("a\0b".into()),
            Way::HugeOutput => return Ok("x".repeat(10 << 20)),
            Way::NulError => return Err(Fault::terminal("od\0d", "a\0b")),
            _ => {}
        }
        Ok("done".into())
    }

    async fn undo(&self, _: &World, _: &Call) -> Result<(), Fault> {
        assert!(self.way != Way::UndoPanics, "told to panic in the undo");
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RudeFlow {
    way: Way,
}

impl Workflow for RudeFlow {
    const NAME: &'static str = "test.rude";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::undoable("rude")];
    type Env = World;

    async fn run(&self, run: &mut Run<World>) -> Result<(), Halt> {
        if self.way == Way::HangsFirst && !HUNG.swap(true, Ordering::SeqCst) {
            pending::<()>().await;
        }
        run.step(Rude { way: self.way }).await?;
        if self.way == Way::NulKey {
            run.step_for("a\0b", Rude { way: self.way }).await?;
        }
        if self.way == Way::UndoPanics {
            return Err(run.fail(&Fault::terminal("told_to", "now undo")).await);
        }
        Ok(())
    }
}

async fn rude(way: Way) -> (Story, Workers, Uuid) {
    // Soon where a step must be lost; a busy machine would lose the others too.
    let grace = match way {
        Way::BlocksOnce | Way::HangsFirst => Duration::from_secs(1),
        Way::BlocksAlways => Duration::from_secs(2),
        _ => quick().lost_step_grace,
    };
    let slots = if way == Way::HangsFirst { 1 } else { quick().slots };
    let settings = Settings { lost_step_grace: grace, slots, ..quick() };
    let story = Story::idle(settings, None).await;
    let registry = Registry::new().with::<Script>().with::<Child>().with::<RudeFlow>();
    let workers = Workers::start(&story.engine, Arc::clone(&story.world), registry);
    let run = story.start_workflow(&RudeFlow { way }, start()).await.unwrap().id;
    (story, workers, run)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_step_that_never_returns_is_taken_from_its_owner() {
    let (story, workers, run) = rude(Way::BlocksOnce).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let outcomes: Vec<String> =
        sqlx::query_scalar("select outcome from engine.try where run_id = $1 order by attempt")
            .bind(run)
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(outcomes, ["lost", "succeeded"]);
    neighbours_succeed(&story).await;
    workers.stop().await;
    story.end().await;
}

/// Nothing is in the journal whose deadline could pass, and the drive that hangs has the only slot there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_hangs_before_its_first_step_is_taken_from_its_owner() {
    let (story, workers, run) = rude(Way::HangsFirst).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    let epoch: i64 = sqlx::query_scalar("select epoch from engine.run where id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert!(epoch > 1, "it was claimed once more");
    neighbours_succeed(&story).await;
    workers.stop().await;
    story.end().await;
}

/// Each of its tries holds a thread until the test lets it go: as many threads as claims, and some for the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 12)]
async fn a_step_that_blocks_its_thread_every_time_is_quarantined() {
    let (story, workers, run) = rude(Way::BlocksAlways).await;
    let threads = LetGo;
    quarantined(&story, run, "crash_loop").await;
    let lost: i64 =
        sqlx::query_scalar("select count(*) from engine.try where run_id = $1 and outcome = 'lost'")
            .bind(run)
            .fetch_one(&story.pool)
            .await
            .unwrap();
    assert_eq!(lost, i64::from(quick().max_claims), "{}", story.describe(run).await);
    neighbours_succeed(&story).await;
    drop(threads);
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_panics_sticks() {
    let (story, workers, run) = rude(Way::UndoPanics).await;
    let settled = async {
        while !story.state(run).await.is_settled() {
            story.advance(Duration::from_secs(60)).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), settled).await;
    assert!(waited.is_ok(), "it goes on for ever: {}", story.describe(run).await);
    assert_eq!(story.settles(run).await, RunState::Stuck);
    assert_eq!(story.cause(run).await.as_deref(), Some("undo_failed"));
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_cannot_hold_fails_its_run_alone() {
    for way in [Way::NulOutput, Way::HugeOutput, Way::NulError, Way::NulKey] {
        let (story, workers, run) = rude(way).await;
        assert_eq!(story.ends(run).await, RunState::Compensated, "{way:?}: {}", story.describe(run).await);
        neighbours_succeed(&story).await;
        workers.stop().await;
        story.end().await;
    }
}
