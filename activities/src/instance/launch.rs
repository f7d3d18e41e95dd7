//! Gives the node the task to start the workload, with its credentials sealed inside. The run waits for the answer; the
//! undo takes the task back, or has the node take the workload away and waits for its evidence. A node that was lost meanwhile owes
//! that: the debt is written down and the task stays open for it.

use std::time::Duration;

use domain::StatusReason;
use engine::{Activity, Call, Fault, Retry};
use node_protocol::{Generations, Outcome, Remove};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::app_instances::AppInstance;
use store::resource_ledger::{self as ledger, Kind};
use store::{app_instance_releases, node_tasks, teardowns};
use uuid::Uuid;

use super::admit::{images, refused};
use super::credentials::{Credentials, Made, revoke_key};
use super::evidence::gone_or_newer;
use super::reserve::Placement;
use super::{Order, held, holder, insist, is_lost, removal, unreadable, workload};
use crate::Env;

/// The word for which a run waits after this step.
pub const LAUNCHED: &str = "workload_launched";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaunchWorkload {
    pub instance: Uuid,
    pub generation: i64,
    pub placement: Placement,
    /// The permission to pull; its credential is made with the task.
    pub pull: Uuid,
    /// Whether nothing else of the instance stands on the node, so that the undo leaves nothing at all.
    pub alone: bool,
}

impl Activity for LaunchWorkload {
    const NAME: &'static str = "launch_workload";
    /// The undo waits for the node by trying again: ten seconds apart, for a quarter of an hour.
    const RETRY: Retry =
        Retry::times(100).starting_at(Duration::from_millis(200)).at_most(Duration::from_secs(10));
    const UNDO: bool = true;
    type Env = Env;
    type Output = Uuid;

    async fn run(&self, env: &Env, call: &Call) -> Result<Uuid, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        if let Some(known) = node_tasks::find_by_key(&mut tx, &call.idempotency_key).await? {
            // The credentials inside are those of the first try; only the fence rises.
            node_tasks::raise_epoch(&mut tx, known.id, call.epoch).await?;
            tx.commit().await?;
            return Ok(known.id);
        }
        // A revocation takes its turn on the artifact's row: it comes before this task, or finds the credential inside.
        if let Err(why) = images(&mut tx, instance.id).await {
            tx.rollback().await?;
            return Err(refused(env, instance.id, why).await?);
        }
        let credentials = Credentials { instance: &instance, pull: self.pull, generation: self.generation };
        let Made { task: id, sealed, given } = credentials.make(&mut tx, env).await?;
        let (task, rendered) = workload::launch(&mut tx, env, &instance, self, &given, call).await?;
        let input = task.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance: &instance,
            node: self.placement.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(LAUNCHED),
            sealed: Some((id, &sealed)),
        };
        node_tasks::insert(&mut tx, &order.task(call)).await?;
        let ports = json!(self.placement.ports);
        let (of, now) = (instance.id, self.generation);
        let on = (&ports, self.placement.gpus.as_slice());
        app_instance_releases::set_launched(&mut tx, of, now, on, rendered.as_ref()).await?;
        let name = ledger::workload_on(self.placement.node_id, self.generation);
        ledger::post(&mut tx, holder(&instance, call), Kind::Workload, &name, 1).await?;
        tx.commit().await?;
        Ok(id)
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let launch = call.idempotency_key.replace("/undo", "/do");
        let known = node_tasks::find_by_key(&mut tx, &launch).await?;
        let never_seen = known.is_none() || node_tasks::withdraw(&mut tx, &launch).await?;
        let still_there = if never_seen { None } else { self.gone(&mut tx, &instance, call).await?.err() };
        let owed = still_there.is_some() && is_lost(&mut tx, self.placement.node_id).await?;
        if let Some(trouble) = still_there.filter(|_| !owed) {
            tx.commit().await?;
            return Err(Fault::retry("waiting_for_node", format!("the workload is not gone: {trouble}")));
        }
        revoke_key(&mut tx, &instance, self.generation).await?;
        if owed {
            // It stays on the books until the node shows that it is gone.
            self.owe(&mut tx, &launch, call).await?;
        } else {
            ledger::give_back_of_run(&mut tx, holder(&instance, call), &[Kind::Workload]).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

impl LaunchWorkload {
    /// Has the node show that the workload is gone, or tells why it has not.
    async fn gone(
        &self,
        conn: &mut PgConnection,
        instance: &AppInstance,
        call: &Call,
    ) -> Result<Result<(), String>, Fault> {
        let (instance_id, generations) = (self.instance, Generations::Only(self.generation));
        let remove = removal(instance, Remove { instance_id, generations, for_good: self.alone });
        let input = remove.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance,
            node: self.placement.node_id,
            generation: self.generation,
            kind: remove.kind(),
            input: &input,
            signal: None,
            sealed: None,
        };
        Ok(insist(conn, &order, call, |outcome| gone_or_newer(instance_id, outcome)).await?.map(drop))
    }

    /// What the node began is not handed out again when it returns; the removal is.
    async fn owe(&self, conn: &mut PgConnection, launch: &str, call: &Call) -> Result<(), Fault> {
        let message = "the node was lost before it answered".to_owned();
        let failed = Outcome::Failed { reason: StatusReason::NodeUnreachable, message };
        node_tasks::give_up(conn, launch, &json!(failed)).await?;
        teardowns::owe(conn, self.instance, self.placement.node_id, call.run).await?;
        Ok(())
    }
}
