//! The node's word on what is there and how it is, regularly and when there is news; and what the platform answers to it.

use std::time::Duration;

use node_protocol::{Heartbeat, HeartbeatAnswer, Signed};
use tokio::time::sleep;

use super::Inner;
use crate::drivers::Driver;
use crate::platform::PlatformFault;
use crate::report;

/// News of a workload wait so long for others, to be told together.
const SOON: Duration = Duration::from_secs(1);

impl<D: Driver> Inner<D> {
    pub(super) async fn beat(&self) {
        let mut every = SOON;
        loop {
            if let Err(fault) = self.relay.follow(&*self.driver).await {
                tracing::warn!(%fault, "not every instance can reach the platform");
            }
            if let Err(fault) = self.meter.measure(&*self.driver).await {
                tracing::debug!(%fault, "what workloads use cannot be measured");
            }
            every = self.report().await.unwrap_or(every);
            tokio::select! {
                () = sleep(every) => {}
                () = self.watch.news() => sleep(SOON.min(every)).await,
            }
        }
    }

    /// Tells what is there and how it is. Answers when to tell again, if the platform heard it.
    pub(super) async fn report(&self) -> Option<Duration> {
        let _look = self.looks.lock().await;
        let mut answer = self.say().await?;
        if self.has_lost_count(answer.kept_sequence) {
            answer = self.say().await?;
        }
        for list in answer.handovers.iter().chain([&answer.keyring]) {
            self.follow(list);
        }
        if let Some(keep) = &answer.keep_images {
            self.images.sweep(&*self.driver, keep, (self.now)()).await;
        }
        let asked = Duration::from_secs(u64::from(answer.heartbeat_seconds.max(1)));
        Some(asked.min(self.settings.longest_beat))
    }

    /// One look, told once.
    async fn say(&self) -> Option<HeartbeatAnswer> {
        let version = &self.settings.agent_version;
        let told = report::heartbeat(&self.driver, &self.watch, &self.meter, &self.journal, version);
        let beat = told.await.inspect_err(|fault| tracing::warn!(%fault, "the engine cannot be looked at"));
        let mut beat = beat.ok()?;
        beat.keyring_version = Some(self.keyring().version);
        beat.asks_for_images = self.images.are_due((self.now)());
        let heard = self.tell_with_address(&mut beat).await;
        heard.inspect_err(|fault| tracing::warn!(%fault, "the heartbeat was not heard")).ok()
    }

    /// The address goes with it until a report is kept that had it.
    async fn tell_with_address(&self, beat: &mut Heartbeat) -> Result<HeartbeatAnswer, PlatformFault> {
        beat.address = self.new_address().clone();
        let mut heard = self.platform.heartbeat(beat).await;
        let is_refused = matches!(heard, Err(PlatformFault::Refused { status: 400, .. }));
        if is_refused && beat.address.take().is_some() {
            tracing::warn!("the platform does not take the address; it may be of an earlier release");
            *self.new_address() = None;
            heard = self.platform.heartbeat(beat).await;
        }
        let is_kept = heard.as_ref().is_ok_and(|answer| answer.kept_sequence == Some(beat.sequence));
        if is_kept {
            *self.new_address() = None;
        }
        heard
    }

    /// Whether the platform keeps a later report than this node knows to have made: its journal is gone, or was set back. What it
    /// says is no news there until it counts on from that number.
    fn has_lost_count(&self, kept: Option<i64>) -> bool {
        let counted = kept.map_or(Ok(false), |kept| self.journal.count_on_from(kept));
        counted.inspect_err(|fault| tracing::error!(%fault, "the journal cannot be written")).unwrap_or(false)
    }

    /// A newer list of signers, if one that is believed now signed it.
    fn follow(&self, signed: &Signed) {
        let mut keyring = self.keyring();
        if let Some(next) = keyring.successor(signed) {
            if let Err(fault) = self.home.keep_keyring(&next) {
                return tracing::error!(%fault, "the list of signers cannot be kept");
            }
            *keyring = next;
        }
    }
}
