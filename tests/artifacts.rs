//! Artifacts: who may publish what where, what is believed of it, and how its life goes on. The registry is a real one.

mod intents;
mod register;
mod registry;
pub mod signer;
mod trust;
mod yard;
