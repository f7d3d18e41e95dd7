//! Has the node take everything of an instance away, for good. The run waits for the node's evidence.

use engine::{Activity, Call, Fault};
use node_protocol::{Generations, Remove, Task};
use serde::{Deserialize, Serialize};
use store::node_tasks;
use uuid::Uuid;

use super::{Order, held, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const REMOVED: &str = "workload_removed";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveWorkload {
    pub instance: Uuid,
    pub generation: i64,
    pub node_id: Uuid,
    /// Which try this is; the run waits for the answer to this very one.
    pub attempt: String,
}

impl Activity for RemoveWorkload {
    const NAME: &'static str = "remove_workload";
    type Env = Env;
    type Output = Uuid;

    async fn run(&self, env: &Env, call: &Call) -> Result<Uuid, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let task = Task::OciRemove(Remove {
            instance_id: instance.id,
            generations: Generations::UpTo(self.generation),
            for_good: true,
        });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let signal = format!("{REMOVED}/{}", self.attempt);
        let order = Order {
            instance: &instance,
            node: self.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(&signal),
        };
        let id = node_tasks::insert(&mut tx, &order.task(call)).await?;
        tx.commit().await?;
        Ok(id)
    }
}
