//! The words of the platform, without I/O: error codes, correlation ids, trace parents, principals and what they may
//! do, policies, redaction.
//!
//! Everything here is a pure function or a plain type, so every other crate may use it and tests need no setup.

pub mod correlation;
pub mod error_code;
pub mod permission;
pub mod policy;
pub mod principal;
pub mod redact;
pub mod role;
pub mod scope;
pub mod secret;
pub mod slug;
pub mod trace;

pub use correlation::{CorrelationId, InvalidCorrelationId};
pub use error_code::ErrorCode;
pub use permission::{Permission, PermissionSet};
pub use policy::{PolicyKey, PolicyLayer};
pub use principal::{ActorType, Demand, Grant, Principal, Refusal, authorize};
pub use role::{OrganizationRole, PlatformRole, ProjectRole};
pub use scope::Scope;
pub use secret::Secret;
pub use trace::TraceParent;
