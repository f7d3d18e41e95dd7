//! Has the node take the key out by which somebody logged in for the instance's sake: it is told the complete set that is wanted
//! without it. The run waits for the node's word, since a key that nobody heard to be gone may still open the door. Of an instance
//! that was never given one nobody asks this.

use engine::{Activity, Call, Fault};
use node_protocol::Outcome;
use serde::{Deserialize, Serialize};
use store::app_instances::AppInstance;
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
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        ssh_trusts::end(&mut tx, instance.id).await?;
        let signal = format!("{UNTRUSTED}/{}", self.attempt);
        tell(&mut tx, self.node_id, Asking::by(call, &signal)).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Whether the instance was given a key, so that its node is to be heard. A deployment that turned back ended the trust and did
/// not wait, so that there is no row of it says nothing of the node.
pub fn was_given_key(instance: &AppInstance) -> sqlx::Result<bool> {
    Ok(deployment::credentials::of(instance)?.contains_key(BOOTSTRAP))
}

/// Only a node that wrote this very set is believed. One that knows of a newer set has perhaps not written that one.
pub fn keys_are_as_told(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Succeeded { .. } => Ok(()),
        Outcome::Failed { message, .. } => Err(format!("the node does not take the key out: {message}")),
        Outcome::Refused { refusal } => Err(format!("the node refused to take the key out: {refusal}")),
    }
}
