//! Every number the engine runs by, with its default. `gpuaas doctor` shows them.

use std::time::Duration;

/// An effect of our own database that takes longer hangs. Few transactions are open at once, so others wait for it.
pub(crate) const LONGEST_EFFECT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Settings {
    /// Drives this process runs at once.
    pub slots: usize,
    /// Jobs taken from the queue in one fetch.
    pub batch: usize,
    /// Committer lanes; a run always uses the same lane.
    pub lanes: usize,
    pub lane_rows: usize,
    pub lane_bytes: usize,
    /// Checkpoints that may wait for a lane; more wait in their drivers.
    pub lane_queue: usize,
    /// A write that waits for its answer this long means that the database does not keep up: nothing more is claimed and
    /// starts are refused until it is answered.
    pub pressure_after: Duration,
    /// How long a process owns its runs without renewing, by the database's clock.
    pub lease: Duration,
    pub renew_every: Duration,
    pub reap_every: Duration,
    /// How often an idle worker looks for jobs that other processes queued.
    pub poll_every: Duration,
    /// Drives get this long to reach a checkpoint when the process stops.
    pub drain: Duration,
    /// A step that is silent this long past its timeout counts as lost even if its owner lives, and so does a drive between two
    /// steps. Longer than any effect of our own database may take, whose step follows one that is journaled with it.
    pub lost_step_grace: Duration,
    /// Runs of one project that may be admitted at once.
    pub project_cap: i64,
    /// Ready runs of one project beyond which starts are refused.
    pub project_backlog: i64,
    /// Claims without progress at one position before a run is quarantined.
    pub max_claims: i32,
    /// Retries shorter than this wait in the driver: releasing the run and taking it again would take as long.
    pub inline_retry: Duration,
    /// How often a run that exhausted its retries past the pivot tries again by itself.
    pub slow_retry: Duration,
    /// The operator's `force` is accepted once a run was silent this long.
    pub force_after: Duration,
    pub api_connections: u32,
    pub drive_connections: u32,
    pub statement_timeout: Duration,
    pub lock_timeout: Duration,
    pub idle_in_transaction: Duration,
    /// A transaction pooler stands before Postgres: no statement cache, every statement in a transaction.
    pub pooler: bool,
    pub max_input: usize,
    pub max_signal: usize,
    pub max_error: usize,
    pub max_journal_rows: usize,
    pub max_depth: usize,
    /// Finished runs are kept this long, attempts by whole days.
    pub keep_runs: Duration,
    pub keep_attempt_days: i32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            slots: 256,
            batch: 64,
            lanes: 2,
            lane_rows: 512,
            lane_bytes: 4 << 20,
            lane_queue: 4096,
            pressure_after: Duration::from_secs(2),
            lease: Duration::from_secs(15),
            renew_every: Duration::from_secs(5),
            reap_every: Duration::from_secs(1),
            poll_every: Duration::from_millis(200),
            drain: Duration::from_secs(20),
            lost_step_grace: LONGEST_EFFECT + Duration::from_secs(15),
            project_cap: 100,
            project_backlog: 10_000,
            max_claims: 5,
            inline_retry: Duration::from_millis(20),
            slow_retry: Duration::from_secs(300),
            force_after: Duration::from_secs(30),
            api_connections: 10,
            drive_connections: 10,
            statement_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(2),
            idle_in_transaction: Duration::from_secs(10),
            pooler: false,
            max_input: 256 << 10,
            max_signal: 64 << 10,
            max_error: 8 << 10,
            max_journal_rows: 10_000,
            max_depth: 64,
            keep_runs: Duration::from_secs(90 * 24 * 3600),
            keep_attempt_days: 30,
        }
    }
}

/// The queue is asked by one fetch at a time, and told by another.
pub(crate) const QUEUE_CONNECTIONS: usize = 2;

impl Settings {
    /// A lane has one each; two more are for claims that must be set aside and for unknown commits.
    pub(crate) fn lane_connections(&self) -> usize {
        self.lanes + 2
    }

    /// The most connections that a process of this engine has, by what they are for.
    pub fn connections(&self) -> [(&'static str, usize); 5] {
        [
            ("requests", self.api_connections as usize),
            ("drives", self.drive_connections as usize),
            ("checkpoints", self.lane_connections()),
            ("the queue", QUEUE_CONNECTIONS),
            // Each on a thread of its own.
            ("lease and recovery", 2),
        ]
    }

    /// Of the drives' connections, how many carry effects that may share a transaction. Few, so that they meet.
    pub(crate) fn ferries(&self) -> usize {
        (self.drive_connections as usize / 4).max(1)
    }
}
