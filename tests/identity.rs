//! Who is believed, and what they may do.

mod audit;
mod bounded;
mod conditions;
mod exchange;
mod forged;
mod gate;
mod idempotency;
mod matrix;
mod members;
mod oidc;
mod policies;
mod secret_story;
mod secrets;
pub mod service_accounts;
mod strangers;
mod streams;
