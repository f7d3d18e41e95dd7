//! The words of the platform, without I/O: error codes, correlation ids, trace parents, permission keys, redaction.
//!
//! Everything here is a pure function or a plain type, so every other crate may use it and tests need no setup.

pub mod correlation;
pub mod error_code;
pub mod permission;
pub mod redact;
pub mod trace;

pub use correlation::{CorrelationId, InvalidCorrelationId};
pub use error_code::ErrorCode;
pub use permission::Permission;
pub use trace::TraceParent;
