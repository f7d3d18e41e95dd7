//! The platform's public words over HTTP: what a request may say and what an answer looks like.
//!
//! One file per resource, each with serde for the wire and utoipa for the API document. The server builds its
//! answers from these types and the command line reads them, so the two cannot drift apart.

pub mod bulk_retry;
pub mod error;
pub mod operate;
pub mod page;
pub mod process;
pub mod schedule;
pub mod workflow;

pub use bulk_retry::{BulkRetry, BulkRetryFilter, BulkRetryReport, BulkVerdict, Verdict};
pub use error::{ErrorEnvelope, Invalid, Problem};
pub use operate::{Operate, Operated};
pub use page::Page;
pub use process::Version;
pub use schedule::{MissedTicks, Overlap, Schedule};
pub use workflow::{
    Attempt, AttemptOutcome, RunStatus, Step, StepKind, StepState, StuckCause, StuckCode, WorkflowHandle,
    WorkflowRun, WorkflowRunDetail,
};
