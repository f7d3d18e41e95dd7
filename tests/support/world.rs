//! A world that can be looked at: every effect of a test workflow is a row, keyed by its idempotency key, so that doing
//! it twice shows and undoing it shows. And a workflow whose input says what it does.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use engine::{Activity, Call, Fault, Halt, Observed, PlannedStep, Retry, Run, Workflow};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgPool};
use tokio::sync::Semaphore;

pub struct World {
    pub pool: PgPool,
    /// What goes wrong, by step key; each entry is used up from the front.
    trouble: Mutex<HashMap<String, Vec<Trouble>>>,
    /// Steps told to hang wait here.
    pub gate: Semaphore,
}

#[derive(Debug, Clone)]
pub enum Trouble {
    Retry,
    Terminal,
    NeedsOperator,
    /// The effect happens, then the answer is lost for good.
    HangAfter,
    /// Waits at the gate before the effect.
    Hang,
    Panic,
    UndoFails,
    /// Waits at the gate before it is undone.
    UndoHangs,
}

impl World {
    pub fn new(pool: PgPool) -> World {
        World { pool, trouble: Mutex::default(), gate: Semaphore::new(0) }
    }

    pub fn trouble(&self, key: &str, what: impl IntoIterator<Item = Trouble>) {
        self.trouble.lock().unwrap().entry(key.to_owned()).or_default().extend(what);
    }

    fn next_trouble(&self, key: &str) -> Option<Trouble> {
        let mut all = self.trouble.lock().unwrap();
        let queue = all.get_mut(key)?;
        if queue.is_empty() { None } else { Some(queue.remove(0)) }
    }

    async fn make(&self, step: &str, call: &Call) -> Result<(), Fault> {
        sqlx::query(
            "insert into effect (key, step, run, held, epoch) values ($1, $2, $3, true, $4)
             on conflict (key) do update set calls = effect.calls + 1, held = true, epoch = $4",
        )
        .bind(&call.idempotency_key)
        .bind(step)
        .bind(call.run)
        .bind(call.epoch)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    async fn act(&self, step: &str, call: &Call) -> Result<String, Fault> {
        match self.next_trouble(step) {
            Some(Trouble::Retry) => return Err(Fault::retry("busy", "the world is busy")),
            Some(Trouble::Terminal) => return Err(Fault::terminal("impossible", "the world says no")),
            Some(Trouble::NeedsOperator) => return Err(Fault::needs_operator("odd", "somebody should look")),
            Some(Trouble::Panic) => panic!("told to panic"),
            Some(Trouble::Hang) => self.gate.acquire().await.expect("the gate").forget(),
            Some(Trouble::HangAfter) => {
                self.make(step, call).await?;
                std::future::pending::<()>().await;
            }
            Some(Trouble::UndoFails | Trouble::UndoHangs) | None => {}
        }
        self.make(step, call).await?;
        Ok(format!("done {step}"))
    }
}

/// An effect that stays.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Touch {
    pub key: String,
    pub pad: String,
}

impl Activity for Touch {
    const NAME: &'static str = "touch";
    const RETRY: Retry = Retry::times(3).starting_at(Duration::from_millis(20));
    const TIMEOUT: Duration = Duration::from_millis(1500);
    type Env = World;
    type Output = String;

    async fn run(&self, world: &World, call: &Call) -> Result<String, Fault> {
        world.act(&self.key, call).await
    }
}

/// An effect that is not tried again for hours.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Later {
    pub key: String,
}

impl Activity for Later {
    const NAME: &'static str = "later";
    const RETRY: Retry =
        Retry::times(3).starting_at(Duration::from_hours(24)).at_most(Duration::from_hours(24));
    type Env = World;
    type Output = String;

    async fn run(&self, world: &World, call: &Call) -> Result<String, Fault> {
        world.act(&self.key, call).await
    }
}

/// An effect that is tried again within a second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Soon {
    pub key: String,
}

impl Activity for Soon {
    const NAME: &'static str = "soon";
    const RETRY: Retry = Retry::times(3).starting_at(Duration::from_millis(900));
    type Env = World;
    type Output = String;

    async fn run(&self, world: &World, call: &Call) -> Result<String, Fault> {
        world.act(&self.key, call).await
    }
}

/// An effect that can be taken back, and be looked at before it is repeated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hold {
    pub key: String,
}

impl Activity for Hold {
    const NAME: &'static str = "hold";
    const RETRY: Retry = Retry::times(3).starting_at(Duration::from_millis(20));
    const TIMEOUT: Duration = Duration::from_millis(1500);
    const UNDO: bool = true;
    type Env = World;
    type Output = String;

    async fn run(&self, world: &World, call: &Call) -> Result<String, Fault> {
        world.act(&self.key, call).await
    }

    async fn undo(&self, world: &World, call: &Call) -> Result<(), Fault> {
        match world.next_trouble(&format!("{}/undo", self.key)) {
            Some(Trouble::UndoFails) => return Err(Fault::terminal("will_not_go", "the world keeps it")),
            Some(Trouble::UndoHangs) => world.gate.acquire().await.expect("the gate").forget(),
            _ => {}
        }
        let did = call.idempotency_key.replace("/undo", "/do");
        sqlx::query("update effect set held = false, undos = undos + 1 where key = $1")
            .bind(did)
            .execute(&world.pool)
            .await?;
        Ok(())
    }

    async fn observe(&self, world: &World, call: &Call) -> Result<Observed<String>, Fault> {
        let there: bool = sqlx::query_scalar("select exists (select 1 from effect where key = $1 and held)")
            .bind(&call.idempotency_key)
            .fetch_one(&world.pool)
            .await?;
        Ok(if there { Observed::Done(format!("done {}", self.key)) } else { Observed::Absent })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Do {
    Touch(String),
    Hold(String),
    Later(String),
    Soon(String),
    Write(String),
    Sleep(u64),
    Wait(u64),
    WaitOrNot(u64),
    Child(Vec<Do>),
    Pivot,
    Fail,
    PanicHere,
    Endless,
}

pub fn touch(key: &str) -> Do {
    Do::Touch(key.into())
}

pub fn hold(key: &str) -> Do {
    Do::Hold(key.into())
}

/// Does what its input says, one thing after another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Script {
    pub does: Vec<Do>,
}

const PLAN: &[PlannedStep] = &[
    PlannedStep::activity("touch"),
    PlannedStep::undoable("hold"),
    PlannedStep::transact("write"),
    PlannedStep::sleep("sleep"),
    PlannedStep::wait("word"),
    PlannedStep::child("test.child"),
];

impl Workflow for Script {
    const NAME: &'static str = "test.script";
    const PLAN: &'static [PlannedStep] = PLAN;
    const ON_EXHAUSTED: engine::OnExhausted = engine::OnExhausted::Unwind;
    type Env = World;

    async fn run(&self, run: &mut Run<World>) -> Result<(), Halt> {
        perform(&self.does, run).await
    }
}

/// The same, as a child and with the other answer to exhausted retries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Child {
    pub does: Vec<Do>,
}

impl Workflow for Child {
    const NAME: &'static str = "test.child";
    const PLAN: &'static [PlannedStep] = PLAN;
    type Env = World;

    async fn run(&self, run: &mut Run<World>) -> Result<(), Halt> {
        perform(&self.does, run).await?;
        run.output(&serde_json::json!({"steps": self.does.len()})).await
    }
}

fn perform<'a>(does: &'a [Do], run: &'a mut Run<World>) -> BoxFuture<'a, Result<(), Halt>> {
    Box::pin(async move {
        for one in does {
            match one {
                Do::Touch(key) => {
                    run.step_for(key, Touch { key: key.clone(), pad: String::new() }).await?;
                }
                Do::Hold(key) => {
                    run.step_for(key, Hold { key: key.clone() }).await?;
                }
                Do::Later(key) => {
                    run.step_for(key, Later { key: key.clone() }).await?;
                }
                Do::Soon(key) => {
                    run.step_for(key, Soon { key: key.clone() }).await?;
                }
                Do::Write(key) => write(run, key.clone()).await?,
                Do::Sleep(ms) => run.sleep("sleep", Duration::from_millis(*ms)).await?,
                Do::Wait(ms) => {
                    let _: serde_json::Value = run.wait_for("word", Duration::from_millis(*ms)).await?;
                }
                Do::WaitOrNot(ms) => {
                    let said: Option<String> = run.wait_until("word", "", Duration::from_millis(*ms)).await?;
                    let key = said.unwrap_or_else(|| "silence".into());
                    run.step_for(&key, Touch { key: key.clone(), pad: String::new() }).await?;
                }
                Do::Child(does) => {
                    run.child(&Child { does: does.clone() }).await?;
                }
                Do::Pivot => run.pivot(),
                Do::Fail => return Err(run.fail(&Fault::terminal("told_to", "the script says fail")).await),
                Do::PanicHere => panic!("the workflow itself panics"),
                Do::Endless => {
                    for n in 0.. {
                        run.step_for(n, Touch { key: format!("endless{n}"), pad: String::new() }).await?;
                    }
                }
            }
        }
        Ok(())
    })
}

async fn write(run: &mut Run<World>, key: String) -> Result<(), Halt> {
    let id = run.id();
    run.transact("write", move |conn: &mut PgConnection| {
        let key = key.clone();
        Box::pin(async move {
            // No ON CONFLICT: a second commit of the same effect would fail loudly.
            sqlx::query("insert into effect (key, step, run, held, epoch) values ($1, $2, $3, true, 0)")
                .bind(format!("{id}/write/{key}"))
                .bind(key)
                .bind(id)
                .execute(conn)
                .await?;
            Ok(())
        })
    })
    .await
}
