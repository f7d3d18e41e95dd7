//! A run that begins where it was started. While nobody waits in the queue, a process with a free slot owns its new
//! runs from their first row on: no job, no fetch, no claim. The drive begins once the caller has committed.
//!
//! Nothing rests on the caller keeping that order. A berth that is given up leaves its run to a later look: if the run
//! was committed after all it goes to the queue, and if the process dies the reaper finds it like any other.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::claim::Claimed;
use crate::intake::Slot;

/// How long a transaction whose berth was given up may still commit.
const UNDECIDED: Duration = Duration::from_secs(120);

/// A crew with room, whatever its environment's type.
pub(crate) trait Host: Send + Sync {
    /// A slot for a run of this kind, if one is free and the crew knows the kind.
    fn reserve(&self, kind: &str, version: i32) -> Option<Slot>;
    /// Who the run will belong to.
    fn id(&self) -> Uuid;
    fn launch(self: Arc<Self>, slot: Slot, claimed: Claimed);
    fn forsake(&self, run: Forsaken);
}

/// A slot held for a run that is about to be inserted.
pub(crate) struct Berth {
    host: Arc<dyn Host>,
    slot: Option<Slot>,
    claimed: Option<Claimed>,
}

impl Berth {
    pub(crate) fn at(host: Arc<dyn Host>, kind: &str, version: i32) -> Option<Berth> {
        let slot = host.reserve(kind, version)?;
        Some(Berth { host, slot: Some(slot), claimed: None })
    }

    pub(crate) fn owner(&self) -> Uuid {
        self.host.id()
    }

    /// The run's row was written; whether it stays is up to the caller's transaction.
    pub(crate) fn board(&mut self, claimed: Claimed) {
        self.claimed = Some(claimed);
    }

    /// The caller committed.
    pub(crate) fn cast_off(mut self) {
        if let (Some(slot), Some(claimed)) = (self.slot.take(), self.claimed.take()) {
            Arc::clone(&self.host).launch(slot, claimed);
        }
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed.take() {
            self.host.forsake(Forsaken { run: claimed.id, since: Instant::now() });
        }
    }
}

impl fmt::Debug for Berth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Berth").field("run", &self.claimed.as_ref().map(|c| c.id)).finish_non_exhaustive()
    }
}

/// A run whose starter went away between writing it and telling us that it committed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forsaken {
    pub(crate) run: Uuid,
    since: Instant,
}

impl Forsaken {
    pub(crate) fn may_still_commit(&self) -> bool {
        self.since.elapsed() < UNDECIDED
    }
}
