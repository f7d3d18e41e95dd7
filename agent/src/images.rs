//! Images that this agent had pulled and that nothing needs any more go after a while. What instances run here, or may return
//! to, the platform says; an image that it names stays, so a rollback needs no registry. Nobody else's images are touched.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use node_protocol::Image;
use serde::{Deserialize, Serialize};

use crate::drivers::Driver;
use crate::home::{Home, HomeFault};

const FILE: &str = "images.json";
/// So often the platform is asked what must stay.
const ASKED_EVERY: TimeDelta = TimeDelta::hours(1);

pub(crate) struct Images {
    home: Home,
    kept_for: TimeDelta,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By what an engine calls them.
    known: BTreeMap<String, Known>,
    asked_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Known {
    image: Image,
    /// When something was last started from it, or it was last said to be needed.
    used_at: DateTime<Utc>,
}

impl Images {
    pub(crate) fn open(home: Home, kept_for: Duration) -> Result<Images, HomeFault> {
        let known = home.read_if_there(FILE)?.unwrap_or_default();
        let kept_for = TimeDelta::from_std(kept_for).unwrap_or(TimeDelta::MAX);
        Ok(Images { home, kept_for, state: Mutex::new(State { known, asked_at: None }) })
    }

    /// Something is started from it. An image that no registry has could not be pulled again, so it is nobody's to remove.
    pub(crate) fn used(&self, image: &Image, now: DateTime<Utc>) {
        if image.registry.is_none() {
            return;
        }
        let mut state = self.state();
        state.known.insert(image.reference(), Known { image: image.clone(), used_at: now });
        self.write(&state);
    }

    /// Whether it is time to ask what must stay.
    pub(crate) fn are_due(&self, now: DateTime<Utc>) -> bool {
        let mut state = self.state();
        let is_due = state.asked_at.is_none_or(|asked| asked + ASKED_EVERY <= now)
            && state.known.values().any(|known| self.is_old(known, now));
        if is_due {
            state.asked_at = Some(now);
        }
        is_due
    }

    /// Takes away what is old, and neither in use nor to be kept.
    pub(crate) async fn sweep<D: Driver>(&self, driver: &D, keep: &[String], now: DateTime<Utc>) {
        let old: Vec<Known> =
            self.state().known.values().filter(|known| self.is_old(known, now)).cloned().collect();
        for known in old {
            let reference = known.image.reference();
            let gone = if keep.contains(&known.image.digest) {
                false
            } else {
                driver.remove_image(&known.image).await.unwrap_or_else(|fault| {
                    tracing::warn!(%fault, image = reference, "an image cannot be removed");
                    false
                })
            };
            let mut state = self.state();
            if gone {
                tracing::info!(image = reference, "an image that nothing needs was removed");
                state.known.remove(&reference);
            } else if let Some(known) = state.known.get_mut(&reference) {
                known.used_at = now;
            }
            self.write(&state);
        }
    }

    fn is_old(&self, known: &Known, now: DateTime<Utc>) -> bool {
        now - known.used_at >= self.kept_for
    }

    /// What cannot be written down is forgotten with this process, and its image stays.
    fn write(&self, state: &State) {
        let bytes = serde_json::to_vec_pretty(&state.known).unwrap_or_default();
        if let Err(fault) = self.home.write(FILE, &bytes) {
            tracing::warn!(%fault, "which images were used cannot be written down");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
