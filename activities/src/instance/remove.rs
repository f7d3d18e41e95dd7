//! Has the node take workloads of an instance away: all of them for good, or those of earlier generations. The run waits
//! for the node's evidence.

use engine::{Activity, Call, Fault};
use node_protocol::{Generations, Remove};
use serde::{Deserialize, Serialize};
use store::node_tasks;
use uuid::Uuid;

use super::{Order, held, removal, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const REMOVED: &str = "workload_removed";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveWorkload {
    pub instance: Uuid,
    pub generation: i64,
    pub node_id: Uuid,
    /// Whether everything goes, for good; else what is older than the run's own generation.
    pub for_good: bool,
    /// Which try this is; the run waits for the answer to this very one.
    pub attempt: String,
}

impl RemoveWorkload {
    /// What is older than this generation.
    pub fn before(instance: Uuid, generation: i64, node_id: Uuid) -> RemoveWorkload {
        RemoveWorkload { instance, generation, node_id, for_good: false, attempt: String::new() }
    }

    fn which(&self) -> Generations {
        Generations::UpTo(if self.for_good { self.generation } else { self.generation - 1 })
    }

    /// A wait without a key is known by its name alone.
    fn signal(&self) -> String {
        if self.attempt.is_empty() { REMOVED.to_owned() } else { format!("{REMOVED}/{}", self.attempt) }
    }
}

impl Activity for RemoveWorkload {
    const NAME: &'static str = "remove_workload";
    type Env = Env;
    type Output = Uuid;

    async fn run(&self, env: &Env, call: &Call) -> Result<Uuid, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let (instance_id, generations) = (instance.id, self.which());
        let task = removal(&instance, Remove { instance_id, generations, for_good: self.for_good });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let signal = self.signal();
        let order = Order {
            instance: &instance,
            node: self.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(&signal),
            sealed: None,
        };
        let id = node_tasks::insert(&mut tx, &order.task(call)).await?;
        tx.commit().await?;
        Ok(id)
    }
}
