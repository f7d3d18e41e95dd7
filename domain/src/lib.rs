//! The words of the platform, without I/O: error codes, correlation ids, trace parents, principals and what they may
//! do, policies, redaction, and for each thing with a life its states and the moves between them.
//!
//! Everything here is a pure function or a plain type, so every other crate may use it and tests need no setup.

pub mod allocation;
pub mod artifact;
pub mod budget;
pub mod canary;
pub mod compose;
pub mod container;
pub mod correlation;
pub mod currency;
pub mod digest;
pub mod entitlement;
pub mod error_code;
pub mod event;
pub mod explanation;
pub mod hourly;
pub mod instance;
pub mod json_diff;
pub mod ledger;
pub mod log_line;
pub mod manifest;
pub mod metering;
pub mod node;
pub mod node_task;
pub mod permission;
pub mod placement;
pub mod policy;
pub mod price;
pub mod principal;
pub mod rating;
pub mod redact;
pub mod role;
pub mod runtime;
pub mod scope;
pub mod secret;
pub mod slug;
pub mod smoke;
pub mod trace;
pub mod version_gate;
pub mod version_status;
pub mod webhook;
pub mod word;
pub mod yaml;

pub use allocation::{AllocationStatus, CapacityShape};
pub use correlation::{CorrelationId, InvalidCorrelationId};
pub use digest::Digest;
pub use error_code::ErrorCode;
pub use event::EventType;
pub use instance::{InstanceStatus, ReasonKind, StatusReason};
pub use log_line::{LogLine, LogStream};
pub use metering::{UsageSource, Window};
pub use node::NodeStatus;
pub use node_task::TaskStatus;
pub use permission::{Permission, PermissionSet, ProjectPermission};
pub use policy::{PolicyKey, PolicyLayer};
pub use principal::{ActorType, Demand, Grant, Principal, Reach, Refusal, authorize};
pub use role::{OrganizationRole, PlatformRole, ProjectRole};
pub use runtime::{ControlPlaneScope, OperatingMode, RuntimeBackend, TenantBoundaryMode};
pub use scope::Scope;
pub use secret::Secret;
pub use smoke::{SmokeEvidence, SmokeVerdict};
pub use trace::TraceParent;
pub use version_status::{VersionAction, VersionStatus};
pub use word::UnknownWord;
