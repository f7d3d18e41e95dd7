//! Artifacts: who may publish what where, what is believed of it, and how its life goes on. The registry is a real one.

mod blobs;
mod bound;
mod bucket;
mod frozen;
mod gates;
mod intents;
mod killed;
mod liar;
mod lifecycle;
mod oracle;
mod outages;
mod register;
mod registry;
mod releases;
mod retention;
mod revoked;
mod signed_blobs;
pub mod signer;
mod strangers;
mod struck;
mod trust;
mod vault;
pub mod yard;
