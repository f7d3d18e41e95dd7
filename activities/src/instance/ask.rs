//! Has the node make the requests of the version's own tests. The run waits for the verdicts.

use domain::compose;
use domain::manifest::Manifest;
use engine::{Activity, Call, Fault};
use node_protocol::{HealthProbe, Task};
use serde::{Deserialize, Serialize};
use store::{allocations, app_instances, app_versions, node_tasks};
use uuid::Uuid;

use super::{Order, held, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const ASKED: &str = "smoke_asked";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AskWorkload {
    pub instance: Uuid,
    pub generation: i64,
}

impl Activity for AskWorkload {
    const NAME: &'static str = "ask_workload";
    type Env = Env;
    /// How long all requests may take together, in seconds.
    type Output = u64;

    async fn run(&self, env: &Env, call: &Call) -> Result<u64, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let gone = |what: &str| Fault::terminal("no_such_instance", format!("the {what} is gone"));
        let known = app_instances::find(&mut tx, self.instance).await?.ok_or_else(|| gone("instance"))?;
        let version = app_versions::find(&mut tx, &known.app_slug, &known.version).await?;
        let version = version.ok_or_else(|| gone("version"))?;
        let manifest: Manifest =
            serde_json::from_value(version.manifest).map_err(|error| unreadable(&error))?;
        let profile = manifest.version.runtime_profile;
        let member = profile.map_or_else(|| compose::MAIN.to_owned(), |it| compose::member_of(&it, None));
        let requests = manifest.version.smoke;
        let seconds = requests.iter().map(|test| u64::from(test.timeout_seconds)).sum();
        let allocation = known.allocation_id.ok_or_else(|| gone("allocation"))?;
        let allocation = allocations::find(&mut tx, allocation).await?.ok_or_else(|| gone("allocation"))?;
        let instance = held(&mut tx, self.instance).await?;
        let task = Task::DiagHealthProbe(HealthProbe {
            instance_id: instance.id,
            member,
            generation: self.generation,
            probe: None,
            requests,
        });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance: &instance,
            node: allocation.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(ASKED),
            sealed: None,
        };
        node_tasks::insert(&mut tx, &order.task(call)).await?;
        tx.commit().await?;
        Ok(seconds)
    }
}
