//! One file per effect on the world, and `Env`, through which they reach it.

pub mod artifact_uses;
pub mod delete_bytes;
pub mod delete_strays;
pub mod deliver_due;
pub mod demo;
pub mod discard_uploads;
mod env;
pub mod instance;
pub mod list_manifests;
pub mod list_strays;
pub mod order_update;
pub mod promises;
pub mod relay_events;
pub mod rotate_signer;
mod task_signers;
pub mod trust;
pub mod verify_artifact;
pub mod version_gates;
pub mod version_references;

pub use clients::nats::{EventStream, NatsSettings};
pub use env::Env;
pub use task_signers::{SignerFault, TaskSigners};
