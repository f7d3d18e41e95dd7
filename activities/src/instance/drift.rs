//! Bringing a node back to what an instance should be there: starting what stands still, taking away what nobody wants.

use engine::{Activity, Call, Fault};
use node_protocol::{Control, ControlAction, Generations, Remove, Task};
use serde::{Deserialize, Serialize};
use store::app_instances::AppInstance;
use store::node_tasks;
use uuid::Uuid;

use super::{Order, control, held, removal, unreadable};
use crate::Env;

/// The words for which a run waits after these steps.
pub const RESTARTED: &str = "workload_restarted";
pub const STRAY_REMOVED: &str = "stray_removed";

/// Starts the workload that serves and was found standing still.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestartWorkload {
    pub instance: Uuid,
    pub node_id: Uuid,
    /// The one that serves.
    pub serving: i64,
}

impl Activity for RestartWorkload {
    const NAME: &'static str = "restart_workload";
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let (instance_id, generation) = (self.instance, self.serving);
        let start = Control { instance_id, generation, action: ControlAction::Start };
        order(env, call, self.instance, self.node_id, |instance| control(instance, start), RESTARTED).await
    }
}

/// Takes one workload away that is not the one that serves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveStray {
    pub instance: Uuid,
    pub node_id: Uuid,
    pub stray: i64,
    /// Whether the instance has ended, so that its network goes too.
    pub for_good: bool,
}

impl Activity for RemoveStray {
    const NAME: &'static str = "remove_stray";
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let generations = Generations::Only(self.stray);
        let remove = Remove { instance_id: self.instance, generations, for_good: self.for_good };
        let signal = format!("{STRAY_REMOVED}/{}", self.stray);
        order(env, call, self.instance, self.node_id, |instance| removal(instance, remove), &signal).await
    }
}

async fn order(
    env: &Env,
    call: &Call,
    instance: Uuid,
    node: Uuid,
    task: impl FnOnce(&AppInstance) -> Task,
    signal: &str,
) -> Result<(), Fault> {
    let mut tx = env.engine.pool().begin().await?;
    let instance = held(&mut tx, instance).await?;
    let task = task(&instance);
    let input = task.input().map_err(|error| unreadable(&error))?;
    let order = Order {
        instance: &instance,
        node,
        generation: instance.generation,
        kind: task.kind(),
        input: &input,
        signal: Some(signal),
        sealed: None,
    };
    node_tasks::insert(&mut tx, &order.task(call)).await?;
    tx.commit().await?;
    Ok(())
}
