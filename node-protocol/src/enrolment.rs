//! How a node becomes known, and how it gets its short tokens afterwards.

use domain::Secret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::keyring::Keyring;
use crate::report::Inventory;

/// The body of `POST /internal/v1/nodes/enroll`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "enrolment_token": "enrol-…", "public_key": "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n",
    "address": "10.0.7.2", "driver": "docker", "agent_version": "0.1.0",
    "inventory": { "cpu_cores": 64, "memory_gib": 512, "gpus": [] }
}))]
pub struct Enrol {
    /// Good once.
    #[schema(value_type = String)]
    pub enrolment_token: Secret<String>,
    /// The public half of the key the node made for itself, Ed25519 in PEM form.
    #[schema(max_length = 1024)]
    pub public_key: String,
    /// Where the node's workloads are reached.
    #[schema(min_length = 1, max_length = 255)]
    pub address: String,
    #[schema(pattern = "^(docker|simulated)$")]
    pub driver: String,
    #[schema(min_length = 1, max_length = 64)]
    pub agent_version: String,
    pub inventory: Inventory,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Enrolled {
    pub node_id: Uuid,
    pub name: String,
    pub key_id: String,
    /// Whom the node's assertions are meant for.
    pub issuer: String,
    /// The signers to believe.
    pub keyring: Keyring,
}

/// The body of `POST /internal/v1/nodes/{id}/token`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "key_id": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "assertion": "eyJ…" }))]
pub struct GetToken {
    pub key_id: String,
    /// A JWT of at most a minute, signed by the node's key.
    #[schema(value_type = String)]
    pub assertion: Secret<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeToken {
    pub access_token: String,
    #[schema(pattern = "^Bearer$")]
    pub token_type: String,
    pub expires_in: i64,
}
