//! Has the node take the key out by which somebody logged in for the instance's sake: it is told the complete set that is wanted
//! without it. The run waits for the node's word, since a key that nobody heard to be gone may still open the door.

use engine::{Activity, Call, Fault};
use node_protocol::Outcome;
use serde::{Deserialize, Serialize};
use store::deployment::credentials::BOOTSTRAP;
use store::{deployment, ssh_trusts};
use uuid::Uuid;

use super::held;
use crate::Env;
use crate::trust::{Asking, tell};

/// The word for which a run waits after this step.
pub const UNTRUSTED: &str = "ssh_trust_ended";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndTrust {
    pub instance: Uuid,
    pub node_id: Uuid,
    /// Which try this is; the run waits for the answer to this very one.
    pub attempt: String,
}

impl Activity for EndTrust {
    const NAME: &'static str = "end_trust";
    type Env = Env;
    /// Whether the instance was ever given a key, so that the node is to be heard.
    type Output = bool;

    async fn run(&self, env: &Env, call: &Call) -> Result<bool, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        // A deployment that turned back ended the trust and did not wait, so its row says nothing of the node.
        if !deployment::credentials::of(&instance)?.contains_key(BOOTSTRAP) {
            return Ok(false);
        }
        ssh_trusts::end(&mut tx, instance.id).await?;
        let signal = format!("{UNTRUSTED}/{}", self.attempt);
        let asking = Asking {
            key: &call.idempotency_key,
            epoch: call.epoch,
            wakes: Some((call.run, &signal)),
            correlation_id: &call.correlation_id,
        };
        tell(&mut tx, self.node_id, asking).await?;
        tx.commit().await?;
        Ok(true)
    }
}

/// Only a node that wrote this very set is believed. One that knows of a newer set has perhaps not written that one.
pub fn keys_are_as_told(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Succeeded { .. } => Ok(()),
        Outcome::Failed { message, .. } => Err(format!("the node does not take the key out: {message}")),
        Outcome::Refused { refusal } => Err(format!("the node refused to take the key out: {refusal}")),
    }
}
