//! Asks a node to try the program of a release. Trust is looked at once more, because a run may have waited; and once more when
//! the node comes for the bytes. The undo takes the task back: a node that has it already returns by itself to what it was, or
//! has reported, and none is given it again.

use domain::artifact::Trust;
use domain::{Digest, StatusReason};
use engine::{Activity, Call, Fault};
use node_protocol::{Outcome, SelfUpdate, Task};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::app_artifacts;
use store::node_tasks::{self, NewNodeTask};
use uuid::Uuid;

use crate::Env;

/// The word for which a run waits after this step.
pub const UPDATED: &str = "agent_updated";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderUpdate {
    pub node_id: Uuid,
    pub artifact_id: Uuid,
    pub version: String,
    /// Its name in the release.
    pub artifact: String,
    pub digest: Digest,
    pub size_bytes: u64,
}

impl Activity for OrderUpdate {
    const NAME: &'static str = "order_update";
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.pool().begin().await?;
        let found = app_artifacts::find(&mut tx, self.artifact_id).await?;
        let trust = found.map(|artifact| artifact.trust()).transpose()?;
        if trust != Some(Trust::Verified) {
            let message = format!("{} of release {} is not trusted any more", self.artifact, self.version);
            return Err(Fault::terminal("artifact_untrusted", message));
        }
        let task = Task::AgentSelfUpdate(SelfUpdate {
            version: self.version.clone(),
            artifact: self.artifact.clone(),
            digest: self.digest.clone(),
            size_bytes: self.size_bytes,
        });
        let unreadable = |error: serde_json::Error| Fault::needs_operator("unreadable", error.to_string());
        let input = task.input().map_err(unreadable)?;
        let new = NewNodeTask {
            id: Uuid::now_v7(),
            node_id: self.node_id,
            org_id: None,
            project_id: None,
            instance_id: None,
            kind: task.kind(),
            idempotency_key: &call.idempotency_key,
            generation: 0,
            epoch: call.epoch,
            wakes: Some((call.run, UPDATED)),
            input: &input,
            sealed: None,
            correlation_id: &call.correlation_id,
            trace_id: call.trace_id.as_deref(),
        };
        node_tasks::insert(&mut tx, &new).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.pool().begin().await?;
        let update = call.idempotency_key.replace("/undo", "/do");
        let late = Outcome::Failed { reason: StatusReason::Internal, message: "it was undone".to_owned() };
        node_tasks::take_back(&mut tx, &update, &json!(late)).await?;
        tx.commit().await?;
        Ok(())
    }
}
