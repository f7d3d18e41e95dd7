//! Stops the workload that serves, where the new one needs its place. The undo starts it again and waits for the node's
//! word, so that a failed change leaves behind what was there.

use std::time::Duration;

use engine::{Activity, Call, Fault, Retry};
use node_protocol::{Control, ControlAction, Outcome};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::node_tasks;
use uuid::Uuid;

use super::{Order, control, held, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const STOPPED: &str = "workload_stopped";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StopWorkload {
    pub instance: Uuid,
    /// The run's own, which fences.
    pub generation: i64,
    /// The one that is stopped.
    pub old_generation: i64,
    pub node_id: Uuid,
}

impl Activity for StopWorkload {
    const NAME: &'static str = "stop_workload";
    /// The undo waits for the node by trying again: ten seconds apart, for a quarter of an hour.
    const RETRY: Retry =
        Retry::times(100).starting_at(Duration::from_millis(200)).at_most(Duration::from_secs(10));
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        self.order(&mut tx, call, ControlAction::Stop, Some(STOPPED)).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let stop = call.idempotency_key.replace("/undo", "/do");
        let known = node_tasks::find_by_key(&mut tx, &stop).await?;
        if known.is_none() || node_tasks::withdraw(&mut tx, &stop).await? {
            tx.commit().await?;
            return Ok(());
        }
        let id = self.order(&mut tx, call, ControlAction::Start, None).await?;
        let result = node_tasks::find(&mut tx, id).await?.and_then(|task| task.result);
        tx.commit().await?;
        match result.map(serde_json::from_value::<Outcome>) {
            None => {
                let message = "the node has not said yet that the old workload runs again";
                Err(Fault::retry("waiting_for_node", message))
            }
            Some(Ok(Outcome::Succeeded { .. })) => Ok(()),
            Some(Ok(other)) => Err(Fault::terminal("restart_failed", format!("{other:?}"))),
            Some(Err(error)) => Err(unreadable(&error)),
        }
    }
}

impl StopWorkload {
    async fn order(
        &self,
        conn: &mut PgConnection,
        call: &Call,
        action: ControlAction,
        signal: Option<&str>,
    ) -> Result<Uuid, Fault> {
        let instance = held(conn, self.instance).await?;
        let (instance_id, generation) = (instance.id, self.old_generation);
        let task = control(&instance, Control { instance_id, generation, action });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance: &instance,
            node: self.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal,
            sealed: None,
        };
        Ok(node_tasks::insert(conn, &order.task(call)).await?)
    }
}
