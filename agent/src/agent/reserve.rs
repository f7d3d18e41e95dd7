//! Networks in reserve: made while nothing is asked of the node, because an engine takes its time to make one, and whoever deploys
//! would wait for it. When the agent is told to stop it leaves none behind; what one left that was killed, the next takes away.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Inner;
use crate::drivers::{Driver, DriverFault};

/// Longer than it takes from a launch to the task that asks whether it serves: until then a deployment is under way.
const QUIET: Duration = Duration::from_millis(500);
/// So often the reserve is looked at although nothing happened: somebody may have tidied up the engine.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// From when the agent is told to stop; well within the time that a process has to end.
const CLEARED_WITHIN: Duration = Duration::from_secs(5);

impl<D: Driver> Inner<D> {
    /// Until it has ended, and the reserve is empty again. An engine that hangs is not waited for then, whatever it was asked last.
    pub(super) async fn keep_reserve(&self, ended: &CancellationToken) {
        let kept = async {
            self.keep_full(ended).await;
            self.clear().await
        };
        let too_late = async {
            ended.cancelled().await;
            sleep(CLEARED_WITHIN).await;
        };
        tokio::select! {
            cleared = kept => {
                if let Err(fault) = cleared {
                    tracing::warn!(%fault, "networks in reserve are left to the next start");
                }
            }
            () = too_late => {
                tracing::warn!("networks in reserve are left to the next start: the engine is slow");
            }
        }
    }

    async fn keep_full(&self, ended: &CancellationToken) {
        loop {
            tokio::select! {
                () = ended.cancelled() => return,
                () = self.hands.quiet(QUIET) => {}
            }
            self.fill(ended).await;
            tokio::select! {
                () = ended.cancelled() => return,
                () = self.hands.changed() => {}
                () = sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// One at a time, and none while there is something to do: an engine makes one after the other. Not cut short by a
    /// task: it would make one that nobody waits for.
    async fn fill(&self, ended: &CancellationToken) {
        while self.hands.are_empty() && !ended.is_cancelled() {
            match self.driver.stock(self.platform.node_id(), self.settings.spare_networks).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(fault) => return tracing::warn!(%fault, "no network can be put in reserve"),
            }
        }
    }

    async fn clear(&self) -> Result<(), DriverFault> {
        while !self.driver.stock(self.platform.node_id(), 0).await? {}
        Ok(())
    }
}
