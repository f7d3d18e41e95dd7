//! How an agent goes about its work; all of it has a usual value.

use std::path::PathBuf;
use std::time::Duration;

/// Two weeks: as long as people remember what they ran.
pub const KEEP_IMAGES: Duration = Duration::from_secs(14 * 24 * 3600);

/// One instance is deployed, and another before there was time to make more.
pub const SPARE_NETWORKS: usize = 2;

#[derive(Debug, Clone)]
pub struct Settings {
    pub agent_version: String,
    /// Where people reach this machine, if the platform is to hear of it.
    pub address: Option<String>,
    /// How long one question for a task waits for its answer.
    pub poll: Duration,
    /// The longest pause after the platform did not answer.
    pub longest_pause: Duration,
    /// Reports come at least this often, whatever the platform asks for.
    pub longest_beat: Duration,
    /// So many tasks of a kind are done at once: launches, other changes, and looks.
    pub at_once: usize,
    /// So many tasks are fetched and not done yet. Each tells that it goes on, and of the 600 requests that a node may make within
    /// a minute heartbeats need some: 16 launches that pull tell 12 times, the other 112 tasks keep a lease of a minute with 3,
    /// which makes 528.
    pub in_hand: usize,
    /// The program that runs, where a supervisor can start another in its place.
    pub program: Option<PathBuf>,
    /// The list of this machine's accounts.
    pub people: PathBuf,
    /// How long an image stays that nothing needs any more.
    pub keep_images: Duration,
    /// So many networks are made ahead of the instances that take them.
    pub spare_networks: usize,
    /// A launch waits so long for its workload to serve; whoever takes longer is asked by a task of its own.
    pub serves_within: Duration,
}

impl Settings {
    pub fn new(agent_version: &str) -> Settings {
        Settings {
            agent_version: agent_version.to_owned(),
            address: None,
            poll: Duration::from_secs(30),
            longest_pause: Duration::from_secs(15),
            longest_beat: Duration::from_secs(60),
            at_once: 16,
            in_hand: 128,
            program: None,
            people: PathBuf::from("/etc/passwd"),
            keep_images: KEEP_IMAGES,
            spare_networks: SPARE_NETWORKS,
            serves_within: Duration::from_millis(250),
        }
    }
}
