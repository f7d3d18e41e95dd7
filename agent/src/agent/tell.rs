//! Results reach the platform, however long it is away: what could not be told waits in the journal.

use node_protocol::Outcome;
use tokio::time::sleep;
use uuid::Uuid;

use super::Inner;
use crate::drivers::Driver;
use crate::platform::PlatformFault;

impl<D: Driver> Inner<D> {
    /// Until the platform has it. What it does not know any more is not told again.
    pub(super) async fn tell(&self, task: Uuid, key: &str, outcome: &Outcome) {
        // What a launch says of its workloads stands until the next report: none that looked before it may come after it.
        let mut look = if outcome.serving().is_some() { Some(self.looks.lock().await) } else { None };
        for trouble in 1.. {
            match self.platform.result(task, key, outcome).await {
                Ok(()) => break,
                Err(PlatformFault::Refused { status, message }) => {
                    tracing::warn!(status, message, %task, "a result was not taken");
                    break;
                }
                Err(fault) => {
                    tracing::warn!(%fault, %task, "a result could not be told yet");
                    look = None;
                    sleep(self.pause(trouble)).await;
                }
            }
        }
        drop(look);
        if let Err(fault) = self.journal.told(key) {
            tracing::error!(%fault, "the journal cannot be written");
        }
    }

    /// Results of a life before this one, of a time when the platform was away, or whose telling went astray.
    pub(super) async fn tell_what_is_untold(&self) {
        for (task, key, outcome) in self.journal.untold() {
            // Whoever has it in hand tells it, or has just told it.
            if self.hands.have(&key) || !self.journal.owes(&key) {
                continue;
            }
            match self.platform.result(task, &key, &outcome).await {
                Ok(()) | Err(PlatformFault::Refused { .. }) => {
                    let _ = self.journal.told(&key);
                }
                Err(_) => return,
            }
        }
    }
}
