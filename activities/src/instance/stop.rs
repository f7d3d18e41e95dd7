//! Stops the workload that serves, where the new one needs its place. The undo starts it again and waits for the node's
//! word, so that a failed change leaves behind what was there. A node that was lost meanwhile starts it when it returns.

use std::time::Duration;

use domain::StatusReason;
use engine::{Activity, Call, Fault, Retry};
use node_protocol::{Control, ControlAction, Outcome, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::app_instances::AppInstance;
use store::node_tasks;
use uuid::Uuid;

use super::{Order, control, held, insist, is_lost, unreadable};
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
        let instance = held(&mut tx, self.instance).await?;
        let input = self.input(&instance, ControlAction::Stop)?;
        let order = self.order(&instance, &input, Some(STOPPED));
        node_tasks::insert(&mut tx, &order.task(call)).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let stop = call.idempotency_key.replace("/undo", "/do");
        let known = node_tasks::find_by_key(&mut tx, &stop).await?;
        // Its answer may have gone astray. Handed out again it would stop what is about to be started.
        let message = "the node did not answer in time".to_owned();
        let late = Outcome::Failed { reason: StatusReason::NodeUnreachable, message };
        if known.is_none() || node_tasks::take_back(&mut tx, &stop, &json!(late)).await? {
            tx.commit().await?;
            return Ok(());
        }
        let input = self.input(&instance, ControlAction::Start)?;
        let order = self.order(&instance, &input, None);
        let answered = insist(&mut tx, &order, call, starts_or_never_will).await?;
        let lost = is_lost(&mut tx, self.node_id).await?;
        tx.commit().await?;
        match answered {
            Ok(Outcome::Succeeded { .. }) => Ok(()),
            Ok(other) => Err(Fault::terminal("restart_failed", format!("{other:?}"))),
            Err(_) if lost => Ok(()),
            Err(trouble) => {
                let message = format!("the old workload does not run again: {trouble}");
                Err(Fault::retry("waiting_for_node", message))
            }
        }
    }
}

/// A node that failed, or heard of it too late, is asked again.
fn starts_or_never_will(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Failed { message, .. } => Err(message.clone()),
        Outcome::Refused { refusal: Refusal::Expired } => Err("the task came too late".to_owned()),
        _ => Ok(()),
    }
}

impl StopWorkload {
    fn input(&self, instance: &AppInstance, action: ControlAction) -> Result<(&'static str, Value), Fault> {
        let (instance_id, generation) = (instance.id, self.old_generation);
        let task = control(instance, Control { instance_id, generation, action });
        Ok((task.kind(), task.input().map_err(|error| unreadable(&error))?))
    }

    fn order<'a>(
        &self,
        instance: &'a AppInstance,
        (kind, input): &'a (&'static str, Value),
        signal: Option<&'a str>,
    ) -> Order<'a> {
        let (node, generation) = (self.node_id, self.generation);
        Order { instance, node, generation, kind, input, signal, sealed: None }
    }
}
