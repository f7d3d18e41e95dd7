//! The node agent: it pulls signed tasks, does them through a container driver, and tells what became of them.
//!
//! It only ever calls out. What it did is in a journal on the node's own disk, so a task is done once however often it is
//! handed out, results survive a restart, and workloads go on while the platform or the agent is away.

mod agent;
mod authorized_keys;
mod contract;
mod drivers;
mod execute;
mod hands;
mod health;
mod home;
mod images;
mod inventory;
mod journal;
mod platform;
mod programs;
mod relay;
mod report;
mod supervise;
mod tail;
mod update;
mod watch;

pub use agent::{Agent, AgentFault, KEEP_IMAGES, SPARE_NETWORKS, Settings};
pub use contract::{Stage, hold_to_contract};
pub use drivers::docker::{Docker, Subnet};
pub use drivers::simulated::{Fault as SimulatedFault, Simulated};
pub use drivers::{Driver, DriverFault, Network, Seen, Told};
pub use home::{Claim, Home, HomeFault, Identity};
pub use inventory::detect as detect_inventory;
pub use journal::{Journal, JournalFault, Verdict};
pub use platform::{Newcomer, Now, Platform, PlatformFault, enrol};
pub use relay::PORT as RELAY_PORT;
pub use supervise::{ADOPTED, REPORTED, Supervisor, SupervisorFault};
pub use tail::Tail;
