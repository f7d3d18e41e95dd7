//! A task on its way to a node: what to do, for whom, until when, and the fence. It is signed whenever it is handed out.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::keyring::Keyring;
use crate::secrets::Secrets;
use crate::signed::{SignatureFault, Signed, Statement};

/// How far the clocks of the platform and a node may differ.
const SKEW: TimeDelta = TimeDelta::seconds(30);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    pub task_id: Uuid,
    /// The one node it is for.
    pub node_id: Uuid,
    /// The same for every try of one step; a node does it once.
    pub idempotency_key: String,
    /// Whose turn it takes; of a task about the node itself, the node.
    pub instance_id: Option<Uuid>,
    /// The fence: a node refuses what is older than it has seen.
    pub generation: i64,
    /// Compared within one idempotency key only.
    pub epoch: i64,
    pub correlation_id: String,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// How long the platform waits to hear of it before handing it out again.
    pub lease_seconds: u32,
    /// Not read as a [`crate::Task`] yet: a node must be able to refuse a kind it does not know.
    pub kind: String,
    pub input: Value,
    #[serde(default, skip_serializing_if = "Secrets::is_empty")]
    pub secrets: Secrets,
}

impl Statement for Envelope {
    const TYPE: &'static str = "application/vnd.gpuaas.node-task.v1+json";
}

/// Why a node will not do a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("its signer is not one this node believes")]
    UnknownSigner,
    #[error("its signature is wrong")]
    BadSignature,
    #[error("it is for another node")]
    WrongNode,
    #[error("it has expired, or is from the future")]
    Expired,
    #[error("this agent does not know its kind")]
    UnknownKind,
    #[error("its input cannot be read")]
    BadInput,
    #[error("a newer generation of the instance was seen here")]
    StaleGeneration,
    #[error("a newer epoch of the same step was seen here")]
    StaleEpoch,
    #[error("the instance was removed from this node")]
    Removed,
}

impl Envelope {
    /// The task, if a believed signer meant it for this node. Whether its time has passed is asked apart, because a task
    /// that came too late is answered.
    pub fn open(signed: &Signed, keyring: &Keyring, node_id: Uuid) -> Result<Envelope, Refusal> {
        let key = keyring.believed(&signed.key_id).ok_or(Refusal::UnknownSigner)?;
        let envelope: Envelope = signed.open(&key).map_err(|fault| match fault {
            SignatureFault::Unreadable => Refusal::BadInput,
            SignatureFault::Wrong | SignatureFault::Unwritable => Refusal::BadSignature,
        })?;
        if envelope.node_id == node_id { Ok(envelope) } else { Err(Refusal::WrongNode) }
    }

    pub fn in_time(&self, now: DateTime<Utc>) -> Result<(), Refusal> {
        let late = self.expires_at + SKEW < now || self.issued_at > now + SKEW;
        if late { Err(Refusal::Expired) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
