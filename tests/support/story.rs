//! The engine in a story: real Postgres, real workers, a world to look at. `end` checks that every promise held.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Asker, Engine, Faults, Registry, RunState, Settings, Signalled, Start, StartError, Started, Workers,
    Workflow,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::database::TestDatabase;
use super::slow::short_or_slow;
use super::stand_in::with_stand_ins;
use super::world::{Child, Do, Script, World};

/// How long a story waits for something that must happen; the long ones put more before it.
fn patience() -> Duration {
    Duration::from_secs(short_or_slow(60, 600))
}

const NO_OBSOLETE_JOB: &str = "select not exists (select 1 from apalis.jobs j
    where not exists (select 1 from engine.run r where r.queued_job = j.id))
    and $1::uuid is not null and $2::text[] is not null";

pub struct Story {
    pub database: TestDatabase,
    pub engine: Engine,
    pub world: Arc<World>,
    pub pool: PgPool,
    workers: Option<Workers>,
}

pub fn quick() -> Settings {
    Settings {
        slots: 64,
        poll_every: Duration::from_millis(20),
        reap_every: Duration::from_millis(50),
        project_cap: 1000,
        ..Settings::default()
    }
}

pub fn registry() -> Registry<World> {
    with_stand_ins(Registry::new().with::<Script>().with::<Child>())
}

pub fn operator() -> Asker {
    Asker { actor: "operator".into(), reason: Some("a test".into()), correlation_id: "c-operator".into() }
}

impl Story {
    pub async fn new() -> Story {
        Story::with(quick(), None).await
    }

    pub async fn with(settings: Settings, faults: Option<Arc<dyn Faults>>) -> Story {
        let mut story = Story::idle(settings, faults).await;
        story.work();
        story
    }

    /// Without workers yet.
    pub async fn idle(settings: Settings, faults: Option<Arc<dyn Faults>>) -> Story {
        Story::on(TestDatabase::new().await, settings, faults)
    }

    pub fn on(database: TestDatabase, settings: Settings, faults: Option<Arc<dyn Faults>>) -> Story {
        let engine = Engine::with_faults(database.options.clone(), settings, faults);
        let pool = database.pool();
        let world = Arc::new(World::new(pool.clone()));
        Story { database, engine, world, pool, workers: None }
    }

    pub fn work(&mut self) {
        self.workers = Some(Workers::start(&self.engine, Arc::clone(&self.world), registry()));
    }

    pub async fn rest(&mut self) {
        if let Some(workers) = self.workers.take() {
            workers.stop().await;
        }
    }

    pub async fn start(&self, does: impl Into<Vec<Do>>) -> Uuid {
        self.start_as(does, start()).await.expect("the start is accepted").id
    }

    pub async fn start_as(&self, does: impl Into<Vec<Do>>, options: Start) -> Result<Started, StartError> {
        self.start_workflow(&Script { does: does.into() }, options).await
    }

    pub async fn start_workflow<W: Workflow>(
        &self,
        workflow: &W,
        options: Start,
    ) -> Result<Started, StartError> {
        let mut tx = self.pool.begin().await.expect("a transaction");
        let mut started = self.engine.start(&mut tx, workflow, options).await?;
        tx.commit().await.expect("a commit");
        started.begin();
        Ok(started)
    }

    pub async fn signal(&self, run: Uuid, name: &str, key: &str, payload: serde_json::Value) -> Signalled {
        let mut tx = self.pool.begin().await.expect("a transaction");
        let signalled =
            self.engine.signal(&mut tx, run, name, key, &payload).await.expect("the signal is taken");
        tx.commit().await.expect("a commit");
        self.engine.wake();
        signalled
    }

    pub async fn ask(&self, act: &str, run: Uuid) -> Result<engine::RunHandle, engine::OperateError> {
        let mut tx = self.pool.begin().await.expect("a transaction");
        let by = operator();
        let asked = match act {
            "pause" => self.engine.pause(&mut tx, run, &by).await,
            "resume" => self.engine.resume(&mut tx, run, &by).await,
            "retry" => self.engine.retry(&mut tx, run, &by).await,
            "cancel" => self.engine.cancel(&mut tx, run, &by).await,
            "force" => self.engine.force(&mut tx, run, &by).await,
            other => panic!("no act {other}"),
        }?;
        tx.commit().await.expect("a commit");
        self.engine.wake();
        Ok(asked)
    }

    pub async fn advance(&self, time: Duration) {
        self.database.advance(&self.pool, time).await;
        self.engine.wake();
    }

    pub async fn state(&self, run: Uuid) -> RunState {
        let state: String = sqlx::query_scalar("select state from engine.run where id = $1")
            .bind(run)
            .fetch_one(&self.pool)
            .await
            .expect("the run");
        state.parse().expect("a known state")
    }

    pub async fn cause(&self, run: Uuid) -> Option<String> {
        sqlx::query_scalar("select cause from engine.run where id = $1")
            .bind(run)
            .fetch_one(&self.pool)
            .await
            .expect("the run")
    }

    /// Waits until the run is in one of these states with no owner.
    pub async fn until(&self, run: Uuid, states: &[RunState]) -> RunState {
        let words: Vec<&str> = states.iter().map(|s| s.as_str()).collect();
        self.until_true(
            &format!("run {run} is one of {words:?}"),
            "select state = any($2) and owner is null from engine.run where id = $1",
            run,
            &words,
        )
        .await;
        self.state(run).await
    }

    pub async fn ends(&self, run: Uuid) -> RunState {
        self.until(run, &[RunState::Succeeded, RunState::Failed, RunState::Compensated, RunState::Cancelled])
            .await
    }

    /// Ends, pauses or sticks.
    pub async fn settles(&self, run: Uuid) -> RunState {
        let settled: Vec<RunState> = RunState::ALL.into_iter().filter(|s| s.is_settled()).collect();
        self.until(run, &settled).await
    }

    /// Waits until a step of the run is in a state.
    pub async fn until_step(&self, run: Uuid, key: &str, state: &str) {
        self.until_true(
            &format!("step {key} of {run} is {state}"),
            "select exists (select 1 from engine.step where run_id = $1 and key = $2[1] and state = $2[2])",
            run,
            &[key, state],
        )
        .await;
    }

    pub async fn until_true(&self, what: &str, sql: &'static str, run: Uuid, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let waited = async {
            loop {
                let asked = sqlx::query_scalar::<_, Option<bool>>(sql)
                    .bind(run)
                    .bind(&words)
                    .fetch_one(&self.pool)
                    .await;
                if matches!(asked, Ok(Some(true))) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(patience(), waited).await.is_err() {
            panic!("waited in vain until {what}\n{}", self.describe(run).await);
        }
    }

    /// The journal as a small table, for messages and assertions.
    pub async fn describe(&self, run: Uuid) -> String {
        let head: String = sqlx::query_scalar(
            "select format('%s rows=%s epoch=%s owner=%s job=%s wake=%s cause=%s %s error=%s', state,
                 (select count(*) from engine.journal where run_id = id), epoch, owner,
                    queued_job, wake_at, cause, cause_detail, error) from engine.run where id = $1",
        )
        .bind(run)
        .fetch_one(&self.pool)
        .await
        .unwrap_or_else(|e| e.to_string());
        format!("{head}\n{}", self.steps(run).await.join("\n"))
    }

    /// `name/key state attempts undos`, in order.
    pub async fn steps(&self, run: Uuid) -> Vec<String> {
        sqlx::query_scalar(
            "select format('%s/%s %s %s %s', name, key, state, attempt, undo_attempt)
             from engine.step where run_id = $1 order by seq",
        )
        .bind(run)
        .fetch_all(&self.pool)
        .await
        .expect("the steps")
    }

    /// What the world holds of a run: step, held, how often it was done and undone.
    pub async fn effects(&self, run: Uuid) -> Vec<(String, bool, i32, i32)> {
        sqlx::query_as("select step, held, calls, undos from effect where run = $1 order by step")
            .bind(run)
            .fetch_all(&self.pool)
            .await
            .expect("the effects")
    }

    /// It had effects, and each was taken back.
    pub async fn gave_everything_back(&self, run: Uuid) {
        let effects = self.effects(run).await;
        let undone = |(_, held, _, undos): &(String, bool, i32, i32)| !held && *undos > 0;
        assert!(!effects.is_empty() && effects.iter().all(undone), "{effects:?}");
    }

    /// Waits until nothing is due or being driven.
    pub async fn quiet(&self) {
        self.until_true(
            "nothing is due",
            "select not exists (select 1 from engine.run where queued_job is not null or owner is not null
                 or wake_at <= engine.now()) and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
    }

    /// Stops the workers and checks every promise.
    pub async fn end(mut self) {
        if self.workers.is_some() {
            // A job whose run was paused or cancelled is dropped by the worker that fetches it.
            self.until_true("obsolete jobs are dropped", NO_OBSOLETE_JOB, Uuid::nil(), &[]).await;
        }
        self.rest().await;
        self.check().await;
        self.engine.close().await;
        self.pool.close().await;
        self.database.drop().await;
    }

    /// The same while other processes go on working.
    pub async fn check_while_others_work(&self) {
        self.until_true("obsolete jobs are dropped", NO_OBSOLETE_JOB, Uuid::nil(), &[]).await;
        self.check().await;
    }

    pub async fn check(&self) {
        let mut conn = self.pool.acquire().await.expect("a connection");
        let broken = engine::check_invariants(&mut conn).await.expect("the checker runs");
        assert!(broken.is_empty(), "promises broken: {broken:#?}");
        let broken = store::promises::check(&mut conn, None).await.expect("the checker runs");
        assert!(broken.is_empty(), "promises broken: {broken:#?}");
        // P4: what unwound left nothing, what succeeded left everything, once.
        let wrong: Vec<String> = sqlx::query_scalar(
            "select format('%s of a %s run is %s', e.key, r.state, case when e.held then 'held' else 'gone' end)
             from effect e join engine.run r on r.id = e.run
             join engine.step s on s.run_id = r.id and s.key = e.step and s.name = 'hold'
             where (r.state in ('compensated', 'cancelled', 'failed') and e.held)
                or (r.state = 'succeeded' and not e.held)",
        )
        .fetch_all(&mut *conn)
        .await
        .expect("the effects");
        assert!(wrong.is_empty(), "P4 broken: {wrong:#?}");
        let jobs: i64 = sqlx::query_scalar(
            "select count(*) from apalis.jobs j where not exists (select 1 from engine.run r where r.queued_job = j.id)",
        )
        .fetch_one(&mut *conn)
        .await
        .expect("the jobs");
        assert_eq!(jobs, 0, "jobs that no run names are left");
    }
}

pub fn start() -> Start {
    Start { project_id: Uuid::from_u128(1), correlation_id: "c-test".into(), ..Start::default() }
}
