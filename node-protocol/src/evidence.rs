//! Evidence of a teardown, signed by the node that did it, and the receipt that the platform makes of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::key::PublicKey;
use crate::signed::{SignatureFault, Signed, Statement};
use crate::workload::Generations;

/// What a node found after it removed an instance's workloads: a look at the engine, not a memory of commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub node_id: Uuid,
    pub instance_id: Uuid,
    pub task_id: Uuid,
    pub generations: Generations,
    pub driver: String,
    /// What was there and went, by name.
    pub removed: Vec<String>,
    /// What is still there although it should not be.
    pub remaining: Vec<String>,
    pub observed_at: DateTime<Utc>,
}

impl Evidence {
    pub fn is_clean(&self) -> bool {
        self.remaining.is_empty()
    }
}

impl Statement for Evidence {
    const TYPE: &'static str = "application/vnd.gpuaas.teardown-evidence.v1+json";
}

/// That an instance left nothing behind. It holds all that is needed to check it later, away from the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    pub instance_id: Uuid,
    pub project_id: Uuid,
    pub node_id: Uuid,
    /// The key the node enrolled with, as PEM.
    pub node_key: String,
    /// The node's signed evidence.
    pub evidence: Signed,
    /// What the instance held and gave back, as `kind:resource`.
    pub released: Vec<String>,
    pub decommissioned_at: DateTime<Utc>,
}

impl Statement for Receipt {
    const TYPE: &'static str = "application/vnd.gpuaas.teardown-receipt.v1+json";
}

impl Receipt {
    /// The evidence inside, if the node's key signed it and it is about this instance on this node.
    pub fn evidence(&self) -> Result<Evidence, SignatureFault> {
        let key = PublicKey::from_pem(&self.node_key).map_err(|_| SignatureFault::Wrong)?;
        let evidence: Evidence = self.evidence.open(&key)?;
        let same = evidence.instance_id == self.instance_id && evidence.node_id == self.node_id;
        if same { Ok(evidence) } else { Err(SignatureFault::Wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn evidence(instance: u128) -> Evidence {
        Evidence {
            node_id: Uuid::from_u128(1),
            instance_id: Uuid::from_u128(instance),
            task_id: Uuid::from_u128(3),
            generations: Generations::UpTo(2),
            driver: "simulated".into(),
            removed: vec!["gpuaas-x".into()],
            remaining: vec![],
            observed_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        }
    }

    fn receipt(node: &Key, evidence: Signed) -> Receipt {
        Receipt {
            instance_id: Uuid::from_u128(2),
            project_id: Uuid::from_u128(9),
            node_id: Uuid::from_u128(1),
            node_key: node.public().to_pem().unwrap(),
            evidence,
            released: vec![],
            decommissioned_at: DateTime::from_timestamp(1_800_000_001, 0).unwrap(),
        }
    }

    #[test]
    fn a_receipt_is_checked_from_what_it_holds() {
        let (platform, node) = (Key::generate(), Key::generate());
        let receipt = receipt(&node, Signed::sign(&evidence(2), &node).unwrap());
        let signed = Signed::sign(&receipt, &platform).unwrap();
        let read: Receipt = signed.open(&platform.public()).unwrap();
        assert_eq!(read.evidence(), Ok(evidence(2)));
        assert!(signed.open::<Receipt>(&node.public()).is_err());
    }

    #[test]
    fn evidence_of_another_instance_or_another_node_proves_nothing() {
        let (node, other) = (Key::generate(), Key::generate());
        let elsewhere = receipt(&node, Signed::sign(&evidence(5), &node).unwrap());
        assert_eq!(elsewhere.evidence(), Err(SignatureFault::Wrong));
        let by_another = receipt(&node, Signed::sign(&evidence(2), &other).unwrap());
        assert_eq!(by_another.evidence(), Err(SignatureFault::Wrong));
    }
}
