//! Gives the node the task to start the workload. The run waits for the answer; the undo takes the task back, or has the
//! node take the workload away and waits for its word.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::manifest::RuntimeProfile;
use engine::{Activity, Call, Fault, Retry};
use node_protocol::{Generations, Image, OciLaunch, Outcome, Port, Remove, Resources, Task, Workload};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::AppInstance;
use store::resource_ledger::{self as ledger, Kind};
use store::{app_instance_releases, node_tasks};
use uuid::Uuid;

use super::reserve::{Grant, Placement};
use super::{Order, held, holder, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const LAUNCHED: &str = "workload_launched";

/// How many processes a workload may have.
const PIDS: u32 = 4096;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaunchWorkload {
    pub instance: Uuid,
    pub generation: i64,
    pub placement: Placement,
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
        let task = Task::OciLaunch(OciLaunch { workload: self.workload(&mut tx, &instance, call).await? });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance: &instance,
            node: self.placement.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(LAUNCHED),
        };
        let id = node_tasks::insert(&mut tx, &order.task(call)).await?;
        let name = ledger::workload_on(self.placement.node_id, self.generation);
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        if !taken.iter().any(|held| held.resource == name) {
            ledger::post(&mut tx, holder(&instance, call), Kind::Workload, &name, 1).await?;
        }
        tx.commit().await?;
        Ok(id)
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let launch = call.idempotency_key.replace("/undo", "/do");
        let known = node_tasks::find_by_key(&mut tx, &launch).await?;
        let never_seen = known.is_none() || node_tasks::withdraw(&mut tx, &launch).await?;
        if !never_seen && !self.is_gone(&mut tx, &instance, call).await? {
            tx.commit().await?;
            return Err(Fault::retry(
                "waiting_for_node",
                "the node has not said yet that the workload is gone",
            ));
        }
        let name = ledger::workload_on(self.placement.node_id, self.generation);
        let mut taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        taken.retain(|held| held.resource == name);
        ledger::give_back(&mut tx, holder(&instance, call), &taken).await?;
        tx.commit().await?;
        Ok(())
    }
}

impl LaunchWorkload {
    async fn workload(
        &self,
        conn: &mut PgConnection,
        instance: &AppInstance,
        call: &Call,
    ) -> Result<Workload, Fault> {
        let missing = |what: &str| unreadable(&format!("no {what} was resolved for the instance"));
        let release = app_instance_releases::find(conn, instance.id, Standing::Target).await?;
        let release = release.ok_or_else(|| missing("release"))?;
        let profile: RuntimeProfile =
            serde_json::from_value(release.profile).map_err(|error| unreadable(&error))?;
        let artifacts = app_instance_artifacts::of(conn, instance.id, Standing::Target).await?;
        let image = artifacts.into_iter().next().ok_or_else(|| missing("image"))?;
        let grant: Grant =
            serde_json::from_value(instance.resources.clone()).map_err(|error| unreadable(&error))?;
        let env = profile.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
        Ok(Workload {
            instance_id: instance.id,
            member: Workload::MAIN.to_owned(),
            generation: self.generation,
            correlation_id: call.correlation_id.to_string(),
            image: Image { registry: None, repository: image.repository, digest: image.digest },
            command: (!profile.command.is_empty()).then(|| profile.command.clone()),
            env: env.collect(),
            ports: self.ports(&profile),
            resources: Resources {
                gpu_count: grant.gpu_count,
                cpu_cores: grant.cpu_cores,
                memory_gib: grant.memory_gib,
                pids: PIDS,
            },
            read_only_root: profile.read_only_root,
        })
    }

    fn ports(&self, profile: &RuntimeProfile) -> Vec<Port> {
        let host: &BTreeMap<String, u16> = &self.placement.ports;
        let ports = profile.ports.iter().enumerate().map(|(place, port)| {
            let name = port.endpoint_name(place);
            let host = host.get(&name).copied().unwrap_or_default();
            Port { name, container: port.container, host }
        });
        ports.collect()
    }

    /// Whether the node has shown that the workload is gone; asks it to take it away where nobody has yet.
    async fn is_gone(
        &self,
        conn: &mut PgConnection,
        instance: &AppInstance,
        call: &Call,
    ) -> Result<bool, Fault> {
        let remove = Task::OciRemove(Remove {
            instance_id: self.instance,
            generations: Generations::Only(self.generation),
            for_good: self.alone,
        });
        let input = remove.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance,
            node: self.placement.node_id,
            generation: self.generation,
            kind: remove.kind(),
            input: &input,
            signal: None,
        };
        let id = node_tasks::insert(conn, &order.task(call)).await?;
        let task = node_tasks::find(conn, id).await?;
        let result = task.and_then(|task| task.result);
        match result.map(serde_json::from_value::<Outcome>) {
            None => Ok(false),
            Some(Ok(Outcome::Succeeded { .. })) => Ok(true),
            // A node that refuses a removal knows of a newer generation, which is somebody else's to take away.
            Some(Ok(Outcome::Refused { .. })) => Ok(true),
            Some(Ok(Outcome::Failed { message, .. })) => Err(Fault::terminal("removal_failed", message)),
            Some(Err(error)) => Err(unreadable(&error)),
        }
    }
}
