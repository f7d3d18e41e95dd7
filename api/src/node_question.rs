//! A question to a node for which a caller waits: a task without a run. The caller holds no connection meanwhile, and nothing
//! of the question or its answer is kept once it is over, whether or not the caller stayed for that.

use std::time::Duration;

use domain::ErrorCode;
use node_protocol::{Outcome, Output, Task};
use store::app_instances::AppInstance;
use store::node_tasks::{self, NewNodeTask};
use store::nodes::Node;
use tokio::time::{Instant, sleep};
use tracing::Instrument;
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::State;

/// A node that lives asks for tasks all the time, so one that takes longer is away.
const PATIENCE: Duration = Duration::from_secs(10);
/// The answer may come in by another process, so it is looked for.
const EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Question {
    pub(crate) instance: AppInstance,
    pub(crate) node: Node,
    pub(crate) task: Task,
    pub(crate) correlation_id: String,
}

impl Question {
    /// Asks to the end: a caller who goes away meanwhile would leave the answer behind.
    pub(crate) async fn answer(self, state: &State) -> Result<Output, ApiError> {
        let state = state.clone();
        let asked = tokio::spawn(async move { self.to_its_end(&state).await }.in_current_span());
        asked.await.map_err(|error| ApiError::internal(&error))?
    }

    async fn to_its_end(&self, state: &State) -> Result<Output, ApiError> {
        let id = self.ask(state).await?;
        let told = self.wait(state, id).await;
        let mut tx = state.write().await?;
        node_tasks::forget(&mut tx, id).await?;
        tx.commit().await?;
        match told? {
            Some(Outcome::Succeeded { output }) => Ok(output),
            Some(Outcome::Failed { message, .. }) => Err(ApiError::new(ErrorCode::UpstreamError, message)),
            Some(Outcome::Refused { refusal }) => {
                let message = format!("The node {} would not tell: {refusal}.", self.node.name);
                Err(ApiError::new(ErrorCode::UpstreamError, message))
            }
            None => Err(silent(&self.node)),
        }
    }

    async fn ask(&self, state: &State) -> Result<Uuid, ApiError> {
        let (id, instance) = (Uuid::now_v7(), &self.instance);
        let input = self.task.input().map_err(|error| ApiError::internal(&error))?;
        let new = NewNodeTask {
            id,
            node_id: self.node.id,
            org_id: Some(instance.org_id),
            project_id: Some(instance.project_id),
            instance_id: Some(instance.id),
            kind: self.task.kind(),
            idempotency_key: &format!("{id}/ask"),
            generation: instance.generation,
            epoch: 0,
            wakes: None,
            input: &input,
            sealed: None,
            correlation_id: &self.correlation_id,
            trace_id: None,
        };
        let mut tx = state.write().await?;
        node_tasks::insert(&mut tx, &new).await?;
        tx.commit().await?;
        state.tasks.call(self.node.id);
        Ok(id)
    }

    /// `None` when the time is up, or the process stops.
    async fn wait(&self, state: &State, id: Uuid) -> Result<Option<Outcome>, ApiError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !state.draining.is_cancelled() {
            let mut tx = state.read().await?;
            let task = node_tasks::find(&mut tx, id).await?;
            tx.rollback().await?;
            if let Some(result) = task.and_then(|task| task.result) {
                return serde_json::from_value(result).map(Some).map_err(|error| ApiError::internal(&error));
            }
            sleep(EVERY).await;
        }
        Ok(None)
    }
}

/// Whoever asks again later may well be answered.
pub(crate) fn silent(node: &Node) -> ApiError {
    ApiError::new(ErrorCode::ServiceUnavailable, format!("The node {} does not answer.", node.name))
        .with("node_id", node.id.to_string())
        .retry_after(10)
}
