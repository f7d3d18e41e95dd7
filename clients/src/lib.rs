//! Everything outside our database: whose tokens are believed and by which keys, how secrets are sealed at rest and
//! handed over, the image registry, the stream that events are passed on to, and what time it is. Real implementations,
//! and fakes where a test needs to decide what the world says.

pub mod assertion;
pub mod blobs;
pub mod clock;
pub mod moving;
pub mod nats;
pub mod oci_layout;
pub mod oidc;
pub mod registry;
pub mod seal;
pub mod signing;
pub mod ssh_key;
pub mod tokens;
pub mod trust;
pub mod webhook;
pub mod wrapping;

mod fault;
mod jwt;
mod key_set;
mod public_address;
mod terms;

pub use clock::Clock;
pub use fault::TokenFault;
