//! The wire between the platform and its nodes: what a node is asked to do, what it answers, and how each knows that the
//! other said it.
//!
//! Everything that travels is a plain type, and everything that must be believed is signed: tasks by the platform's
//! signer, teardown evidence and assertions by the node's own key. There is no I/O here.

mod assertion;
mod enrolment;
mod envelope;
mod evidence;
mod key;
mod keyring;
mod outcome;
mod report;
mod secrets;
mod signed;
mod task;
mod workload;

pub use assertion::assert_identity;
pub use enrolment::{Enrol, Enrolled, GetToken, NodeToken};
pub use envelope::{Envelope, Refusal};
pub use evidence::{Evidence, Receipt};
pub use key::{Key, KeyFault, PublicKey};
pub use keyring::{Keyring, Signer, SignerState};
pub use outcome::{Launched, Outcome, Output, Progress, TaskResult};
pub use report::{
    Gpu, GpuUse, Health, Heartbeat, HeartbeatAnswer, Inventory, Usage, WorkloadReport, WorkloadState,
    program_for,
};
pub use secrets::{PullCredential, Secrets};
pub use signed::{SignatureFault, Signed, Statement};
pub use task::{
    AuthorizedKeys, ComposeLaunch, Control, ControlAction, HealthProbe, OciLaunch, ReadLogs, Remove,
    SelfUpdate, Task, TaskFault,
};
pub use workload::{Generations, Image, Port, Probe, ProbeKind, Resources, Workload};
