//! `check_workflow`: what every workflow must survive, as one call from its own tests.
//!
//! The workflow is run once to learn every point it passes. Then it is run again and again: crashed at each point once,
//! failed at each effect before and after it happened, waiting in vain, with each child failing, crashed at each point of the
//! way back, and with each undo failing until an operator retries. Wherever it is struck it must end as promised and leave
//! the world as promised: unwound to nothing, or, where a transaction failed, as if that had never begun.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

use crate::engine::Engine;
use crate::failpoint::{Faults, Point, Strike};
use crate::fault::Fault;
use crate::invariants::check_all;
use crate::operate::Asker;
use crate::registry::{PlannedStep, Registry, Workflow};
use crate::settings::Settings;
use crate::start::Start;
use crate::state::RunState;
use crate::workers::Workers;

/// A migrated database, the workflow, and how to look at the world it acts on.
pub struct Check<W: Workflow> {
    pub database: PgConnectOptions,
    pub workflow: W,
    /// A world in which the workflow has done nothing yet, for the process that has this engine.
    pub fresh_env: fn(&Engine) -> Arc<W::Env>,
    /// Everything the workflow left in the world, in a fixed order.
    pub leftovers: fn(&W::Env) -> Vec<String>,
    /// Called while the run rests: send the signal it waits for, or move the clock.
    pub while_waiting: fn(Engine, Uuid) -> BoxFuture<'static, ()>,
}

/// A point as the hook remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    kind: String,
    step: String,
    undo: bool,
    place: &'static str,
}

impl From<&Point<'_>> for Place {
    fn from(point: &Point<'_>) -> Place {
        Place {
            kind: point.kind.to_owned(),
            step: point.step.to_owned(),
            undo: point.undo,
            place: point.place,
        }
    }
}

/// Strikes once at each planned place, and remembers every place it was asked at and struck.
struct Plan {
    strikes: Mutex<HashMap<Place, Strike>>,
    seen: Mutex<Vec<Place>>,
    struck: Mutex<HashSet<Place>>,
}

impl Plan {
    /// A strike that missed proves nothing. Only around a rest may it: what the run would wait for can be there already.
    fn assert_struck(&self, planned: &[(Place, Strike)]) {
        let struck = self.struck.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, _) in planned.iter().filter(|(place, _)| !place.place.ends_with("-rest")) {
            assert!(struck.contains(place), "nothing was struck at {place:?}");
        }
    }
}

impl Faults for Plan {
    fn strike(&self, point: &Point<'_>) -> Option<Strike> {
        let place = Place::from(point);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.contains(&place) {
            seen.push(place.clone());
        }
        let mut strikes = self.strikes.lock().unwrap_or_else(PoisonError::into_inner);
        // `point` asks for crashes and `strike` for failures: a failure must survive the first question.
        let strike = strikes.get(&place).cloned()?;
        // Of many waits of one name the first is in vain.
        if matches!(strike, Strike::Crash) || place.place == "before-wait" {
            strikes.remove(&place);
        }
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
        Some(strike)
    }
}

/// Adds what the workflow starts.
pub type Others<E> = fn(Registry<E>) -> Registry<E>;

struct Outcome {
    state: RunState,
    leftovers: Vec<String>,
    seen: Vec<Place>,
    journal: Vec<(String, String, bool)>,
}

/// Panics, naming the strike, if the workflow breaks a promise.
pub async fn check_workflow<W: Workflow + Clone>(check: Check<W>) {
    check_workflow_among(check, |registry| registry).await;
}

/// The same of a workflow that starts others, which the registry must then know too.
pub async fn check_workflow_among<W: Workflow + Clone>(check: Check<W>, others: Others<W::Env>) {
    let run_once = |strikes: Vec<(Place, Strike)>| run_once(&check, others, strikes);
    let plain = run_once(vec![]).await;
    assert_eq!(plain.state, RunState::Succeeded, "the workflow must succeed when nothing strikes");
    assert_follows_plan(W::PLAN, &plain.journal);

    // What it starts is checked by itself.
    let own: Vec<&Place> = plain.seen.iter().filter(|place| place.kind == W::NAME).collect();
    let op =
        |place: &Place| plain.journal.iter().find(|step| step.0 == place.step).map(|step| step.1.as_str());
    let is_activity = |place: &Place| op(place) == Some("activity");
    // Nothing lies between these and a point beside them where the others are crashed.
    let crashes = own.iter().filter(|place| match place.place {
        "before-wait" => false,
        "before-effect" => is_activity(place),
        _ => true,
    });
    for place in crashes {
        let struck = run_once(vec![((*place).clone(), Strike::Crash)]).await;
        assert_eq!(struck.state, RunState::Succeeded, "crashed at {place:?}");
        assert_eq!(struck.leftovers, plain.leftovers, "crashed at {place:?}");
    }
    let (mut unwound, mut not_begun) = (None, HashMap::new());
    for place in own.iter().filter(|place| place.place.ends_with("-effect")) {
        let failure = ((*place).clone(), terminal());
        let failed = run_once(vec![failure.clone()]).await;
        if op(place) != Some("transact") {
            assert_unwound(&failed, &plain, &format!("failed at {place:?}"));
        } else if let Some(before) =
            not_begun.insert(place.step.clone(), (failed.state, failed.leftovers.clone()))
        {
            let after = (failed.state, failed.leftovers.clone());
            assert_eq!(after, before, "a transaction that failed left something behind at {place:?}");
        }
        if failed.state == RunState::Compensated && failed.leftovers.is_empty() {
            unwound = Some((failure, failed.seen));
        }
    }
    // What silence means is the workflow's own affair: it ends, and every promise holds.
    for place in own.iter().filter(|place| place.place == "before-wait") {
        run_once(vec![((*place).clone(), terminal())]).await;
    }
    for (child, ..) in plain.journal.iter().filter(|(_, op, _)| op == "child") {
        let of_child = |place: &&Place| place.kind == *child && !place.undo && place.place == "before-effect";
        let Some(place) = plain.seen.iter().find(of_child) else { continue };
        let failed = run_once(vec![(place.clone(), terminal())]).await;
        // Some do without a child that unwound itself, of which nothing is left then.
        if failed.state != RunState::Succeeded || !failed.leftovers.is_empty() {
            assert_unwound(&failed, &plain, &format!("its child failed at {place:?}"));
        }
    }
    let Some((failure, seen)) = unwound else { return };
    for place in seen.iter().filter(|place| place.undo && place.kind == W::NAME) {
        let struck = run_once(vec![failure.clone(), (place.clone(), Strike::Crash)]).await;
        assert_unwound(&struck, &plain, &format!("crashed on the way back at {place:?}"));
        if place.place == "before-effect" {
            let stuck = run_once(vec![failure.clone(), (place.clone(), terminal())]).await;
            assert_unwound(&stuck, &plain, &format!("undo failed at {place:?}, then retried"));
        }
    }
}

/// The steps that the workflow takes when nothing strikes: those around which [`check_workflow`] strikes it.
pub async fn steps_taken<W: Workflow + Clone>(check: &Check<W>, others: Others<W::Env>) -> Vec<String> {
    let plain = run_once(check, others, vec![]).await;
    assert_eq!(plain.state, RunState::Succeeded, "the workflow must succeed when nothing strikes");
    plain.journal.into_iter().map(|(name, ..)| name).collect()
}

fn terminal() -> Strike {
    Strike::Fail(Fault::terminal("struck", "a test failed this step"))
}

/// Unwound to nothing, or paused past the point of no return with everything in place.
fn assert_unwound(outcome: &Outcome, plain: &Outcome, when: &str) {
    match outcome.state {
        RunState::Compensated | RunState::Failed => {
            assert!(outcome.leftovers.is_empty(), "{when}: left behind {:?}", outcome.leftovers);
        }
        RunState::Succeeded => assert_eq!(outcome.leftovers, plain.leftovers, "{when}"),
        other => panic!("{when}: ended {other}"),
    }
}

fn assert_follows_plan(plan: &[PlannedStep], journal: &[(String, String, bool)]) {
    let mut ahead = plan.iter();
    let mut passed: Vec<&PlannedStep> = Vec::new();
    for (name, op, undoable) in journal {
        let fits = |p: &&PlannedStep| p.name == name;
        // What came once may come again under another key, as where a workflow looks until it is satisfied.
        let planned = passed.iter().copied().find(fits).or_else(|| ahead.find(fits));
        let planned = planned.unwrap_or_else(|| panic!("step {name:?} is not in the plan, or out of order"));
        assert_eq!(
            (planned.op.as_str(), planned.undoable),
            (op.as_str(), *undoable),
            "the plan of {name:?} is wrong"
        );
        passed.push(planned);
    }
}

async fn run_once<W: Workflow + Clone>(
    check: &Check<W>,
    others: Others<W::Env>,
    strikes: Vec<(Place, Strike)>,
) -> Outcome {
    let planned = Mutex::new(strikes.iter().cloned().collect());
    let plan = Arc::new(Plan { strikes: planned, seen: Mutex::default(), struck: Mutex::default() });
    let settings = Settings {
        slots: 4,
        api_connections: 2,
        drive_connections: 4,
        poll_every: Duration::from_millis(10),
        reap_every: Duration::from_millis(20),
        ..Settings::default()
    };
    let faults: Arc<dyn Faults> = Arc::clone(&plan) as Arc<dyn Faults>;
    let engine = Engine::with_faults(check.database.clone(), settings, Some(faults));
    let env = (check.fresh_env)(&engine);
    let workers = Workers::start(&engine, Arc::clone(&env), others(Registry::new().with::<W>()));
    let run = begin(&engine, &check.workflow).await;
    let state = follow(check, &engine, run, &plan).await;
    workers.stop().await;
    plan.assert_struck(&strikes);
    let seen = plan.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let outcome =
        Outcome { state, leftovers: (check.leftovers)(&env), seen, journal: journal(&engine, run).await };
    let mut conn = conn(&engine).await;
    let broken = check_all(&engine.inner, &mut conn, None).await.unwrap_or_else(|e| panic!("no check: {e}"));
    assert!(broken.is_empty(), "struck by {strikes:?}: {broken:#?}");
    drop(conn);
    engine.close().await;
    outcome
}

async fn begin<W: Workflow>(engine: &Engine, workflow: &W) -> Uuid {
    let mut tx = begun(engine).await;
    let options = Start { correlation_id: "check-workflow".into(), ..Start::default() };
    let mut started =
        engine.start(&mut tx, workflow, options).await.unwrap_or_else(|e| panic!("cannot start: {e}"));
    tx.commit().await.unwrap_or_else(|e| panic!("cannot start: {e}"));
    started.begin();
    started.id
}

/// Watches the run to its end: feeds its waits, and retries it and its children, each once, where they stick or pause.
async fn follow<W: Workflow>(check: &Check<W>, engine: &Engine, run: Uuid, plan: &Plan) -> RunState {
    let mut retried = HashSet::new();
    for _ in 0..3000 {
        let (state, owned) = state(engine, run).await;
        if state.is_terminal() {
            return state;
        }
        if state == RunState::Waiting && !owned {
            (check.while_waiting)(engine.clone(), run).await;
        }
        for troubled in troubled(engine, run).await {
            if retried.insert(troubled) {
                plan.strikes.lock().unwrap_or_else(PoisonError::into_inner).clear();
                let by =
                    Asker { actor: "check".into(), reason: None, correlation_id: "check-workflow".into() };
                // The run's row is held from the look at it to its job, as whoever asks must: a signal may come in meanwhile.
                let mut tx = begun(engine).await;
                engine.retry(&mut tx, troubled, &by).await.unwrap_or_else(|e| panic!("cannot retry: {e}"));
                tx.commit().await.unwrap_or_else(|e| panic!("cannot retry: {e}"));
                engine.wake();
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the run did not end: {}, {:?}", standing(engine, run).await, journal(engine, run).await);
}

/// Of the run and its children, those that wait for a person.
async fn troubled(engine: &Engine, run: Uuid) -> Vec<Uuid> {
    let mut conn = conn(engine).await;
    sqlx::query_scalar!(
        "select id from engine.run where (id = $1 or parent_id = $1) and owner is null and state in ('paused', 'stuck')",
        run
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap_or_else(|e| panic!("no runs: {e}"))
}

async fn begun(engine: &Engine) -> sqlx::Transaction<'static, sqlx::Postgres> {
    engine.pool().bare().begin().await.unwrap_or_else(|e| panic!("no transaction: {e}"))
}

async fn conn(engine: &Engine) -> sqlx::pool::PoolConnection<sqlx::Postgres> {
    engine.pool().bare().acquire().await.unwrap_or_else(|e| panic!("no connection: {e}"))
}

async fn state(engine: &Engine, run: Uuid) -> (RunState, bool) {
    let mut conn = conn(engine).await;
    let row =
        sqlx::query!(r#"select state, owner is not null as "owned!" from engine.run where id = $1"#, run)
            .fetch_one(&mut *conn)
            .await
            .unwrap_or_else(|e| panic!("no run: {e}"));
    (row.state.parse().unwrap_or_else(|e| panic!("{e}")), row.owned)
}

/// The whole row but its input, which is known.
async fn standing(engine: &Engine, run: Uuid) -> String {
    let mut conn = conn(engine).await;
    let row = sqlx::query_scalar!(
        r#"select jsonb_strip_nulls(to_jsonb(r) - 'input')::text as "row!" from engine.run r where id = $1"#,
        run
    );
    row.fetch_one(&mut *conn).await.unwrap_or_else(|e| panic!("no run: {e}"))
}

async fn journal(engine: &Engine, run: Uuid) -> Vec<(String, String, bool)> {
    let mut conn = conn(engine).await;
    let rows = sqlx::query!(
        r#"select name as "name!", op as "op!", undoable as "undoable!" from engine.steps_of($1) order by seq"#,
        run
    )
        .fetch_all(&mut *conn)
        .await
        .unwrap_or_else(|e| panic!("no journal: {e}"));
    rows.into_iter().map(|r| (r.name, r.op, r.undoable)).collect()
}
