//! The workflows that are measured. `TenSteps` is the reference load: ten durable steps, three with an undo, one a
//! transaction of ours, 256 bytes into and out of each. The others hold a run where a measurement wants it.

use std::time::{Duration, Instant};

use engine::{Activity, Call, Fault, Halt, PlannedStep, Registry, Run, Settings, Workflow};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, QueryBuilder};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

pub const STEPS: u64 = 10;
/// What a payload's JSON weighs, quotes and field name included.
const PAYLOAD: usize = 256;
/// All load belongs to one project; its cap is lifted so that fairness is not what is measured.
pub const PROJECT: Uuid = Uuid::from_u128(0xbe);

/// What the measured activities reach: nothing, but for the moment a step begins.
#[derive(Debug, Default)]
pub struct Env {
    pub begun: Option<UnboundedSender<Instant>>,
}

/// The engine as every measurement runs it.
pub fn settings() -> Settings {
    Settings {
        slots: 1024,
        batch: 256,
        project_cap: 100_000,
        project_backlog: 100_000,
        ..Settings::default()
    }
}

pub fn registry() -> Registry<Env> {
    Registry::new().with::<TenSteps>().with::<Begin>().with::<Parked>().with::<Long>()
}

/// Table that `TenSteps` writes in its transaction; made in every database of the benchmark.
pub const EFFECT_TABLE: &str = "create table effect (run uuid primary key, payload text not null)";

/// Text that makes `{"payload":"…"}` exactly as long as a payload should be. It differs from run to run, so that
/// no layer below can profit from repetition.
pub fn payload() -> String {
    let mut text = String::with_capacity(PAYLOAD);
    while text.len() < PAYLOAD {
        text.push_str(&Uuid::new_v4().simple().to_string());
    }
    text.truncate(PAYLOAD - r#"{"payload":""}"#.len());
    text
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TenSteps {
    pub payload: String,
}

impl Workflow for TenSteps {
    const NAME: &'static str = "bench.ten_steps";
    const PLAN: &'static [PlannedStep] =
        &[PlannedStep::undoable("hold"), PlannedStep::activity("echo"), PlannedStep::transact("write")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let payload = || self.payload.clone();
        for key in 0..3 {
            run.step_for(key, Hold { payload: payload() }).await?;
            run.step_for(key, Echo { payload: payload() }).await?;
        }
        self.write(run).await?;
        for key in 3..6 {
            run.step_for(key, Echo { payload: payload() }).await?;
        }
        Ok(())
    }
}

impl TenSteps {
    async fn write(&self, run: &mut Run<Env>) -> Result<Answer, Halt> {
        let (id, payload) = (run.id(), self.payload.clone());
        run.transact("write", move |conn: &mut PgConnection| {
            let payload = payload.clone();
            Box::pin(async move {
                // The table exists only in the benchmark's databases, so the statement cannot be checked beforehand.
                let mut insert = QueryBuilder::new("insert into effect (run, payload) values (");
                insert.push_bind(id).push(", ").push_bind(&payload).push(")");
                insert.build().execute(conn).await?;
                Ok(Answer { payload })
            })
        })
        .await
    }
}

/// What every step gives back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    payload: String,
}

/// A step that only gives back what it was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Echo {
    payload: String,
}

impl Activity for Echo {
    const NAME: &'static str = "echo";
    type Env = Env;
    type Output = Answer;

    async fn run(&self, _: &Env, _: &Call) -> Result<Answer, Fault> {
        Ok(Answer { payload: self.payload.clone() })
    }
}

/// The same, with an undo to note.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Hold {
    payload: String,
}

impl Activity for Hold {
    const NAME: &'static str = "hold";
    const UNDO: bool = true;
    type Env = Env;
    type Output = Answer;

    async fn run(&self, _: &Env, _: &Call) -> Result<Answer, Fault> {
        Ok(Answer { payload: self.payload.clone() })
    }
}

/// One step that tells when it begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Begin {}

impl Workflow for Begin {
    const NAME: &'static str = "bench.begin";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("tell")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.step(Tell {}).await
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Tell {}

impl Activity for Tell {
    const NAME: &'static str = "tell";
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _: &Call) -> Result<(), Fault> {
        if let Some(begun) = &env.begun {
            // A measurement that no longer listens has what it wanted.
            let _ = begun.send(Instant::now());
        }
        Ok(())
    }
}

/// Waits for a signal that never comes, with a deadline far away.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parked {}

impl Workflow for Parked {
    const NAME: &'static str = "bench.parked";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::wait("never")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.wait_for::<()>("never", Duration::from_secs(3600)).await
    }
}

/// Is inside a step for longer than any measurement lasts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Long {}

impl Workflow for Long {
    const NAME: &'static str = "bench.long";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::activity("linger")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        run.step(Linger {}).await
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Linger {}

impl Activity for Linger {
    const NAME: &'static str = "linger";
    const TIMEOUT: Duration = Duration::from_secs(600);
    type Env = Env;
    type Output = ();

    async fn run(&self, _: &Env, _: &Call) -> Result<(), Fault> {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_weighs_what_the_bar_says() {
        let text = serde_json::to_string(&TenSteps { payload: payload() }).unwrap();
        assert_eq!(text.len(), PAYLOAD);
    }
}
