//! Has the node ask the workload until it serves, or waits for the workload to speak up itself where its health is a
//! heartbeat. Without a declared health check, being started is all that is asked.

use domain::compose;
use domain::manifest::{HealthKind, RuntimeProfile};
use engine::{Activity, Call, Fault};
use node_protocol::{HealthProbe, Probe, ProbeKind, Task};
use serde::{Deserialize, Serialize};
use store::app_instance_artifacts::Standing;
use store::{app_instance_heartbeats, app_instance_releases, node_tasks};
use uuid::Uuid;

use super::{Order, held, unreadable};
use crate::Env;

/// The word for which a run waits after this step.
pub const HEALTHY: &str = "workload_healthy";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProbeWorkload {
    pub instance: Uuid,
    pub generation: i64,
    pub node_id: Uuid,
}

impl Activity for ProbeWorkload {
    const NAME: &'static str = "probe_workload";
    type Env = Env;
    /// How long the workload may take to serve, in seconds; `None` when there is nothing to ask.
    type Output = Option<u32>;

    async fn run(&self, env: &Env, call: &Call) -> Result<Option<u32>, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let release = app_instance_releases::find(&mut tx, instance.id, Standing::Target).await?;
        let release = release.ok_or_else(|| unreadable(&"nothing was resolved for the instance"))?;
        let profile: RuntimeProfile =
            serde_json::from_value(release.profile).map_err(|error| unreadable(&error))?;
        if let Some(health) = profile.health.as_ref().filter(|health| health.kind == HealthKind::Heartbeat) {
            let waiting = (call.run, HEALTHY);
            let silent =
                app_instance_heartbeats::await_first(&mut tx, instance.id, self.generation, waiting).await?;
            tx.commit().await?;
            return Ok(silent.then_some(health.grace_seconds));
        }
        let Some(probe) = probe(&profile) else { return Ok(None) };
        let grace = probe.grace_seconds;
        let task = Task::DiagHealthProbe(HealthProbe {
            instance_id: instance.id,
            member: compose::member_of(&profile, Some(probe.port)),
            generation: self.generation,
            probe: Some(probe),
            requests: Vec::new(),
        });
        let input = task.input().map_err(|error| unreadable(&error))?;
        let order = Order {
            instance: &instance,
            node: self.node_id,
            generation: self.generation,
            kind: task.kind(),
            input: &input,
            signal: Some(HEALTHY),
            sealed: None,
        };
        node_tasks::insert(&mut tx, &order.task(call)).await?;
        tx.commit().await?;
        Ok(Some(grace))
    }
}

/// A heartbeat is the app's own to send, so the node has nothing to ask.
pub(super) fn probe(profile: &RuntimeProfile) -> Option<Probe> {
    let health = profile.health.as_ref()?;
    let kind = match health.kind {
        HealthKind::Http => ProbeKind::Http,
        HealthKind::Tcp => ProbeKind::Tcp,
        HealthKind::Heartbeat => return None,
    };
    Some(Probe {
        kind,
        path: health.path.clone().unwrap_or_else(|| "/".to_owned()),
        port: health.port.or_else(|| profile.ports.first().map(|port| port.container))?,
        interval_seconds: health.interval_seconds,
        timeout_seconds: health.timeout_seconds,
        grace_seconds: health.grace_seconds,
    })
}
