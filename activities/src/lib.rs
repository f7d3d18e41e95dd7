//! One file per effect on the world, and `Env`, through which they reach it.

pub mod demo;
mod env;
pub mod instance;
pub mod promises;
mod task_signers;
pub mod version_gates;
pub mod version_references;

pub use env::Env;
pub use task_signers::{SignerFault, TaskSigners};
