//! The version of authority as this process knows it. Looking it up costs one small query, at most every
//! [`Authority::GLANCE`], however many requests come.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::principals;

use crate::error::ApiError;
use crate::state::State;

#[derive(Default)]
pub(super) struct Authority {
    seen: Mutex<Seen>,
    /// One request looks, the others wait for what it finds.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    version: i64,
    at: Option<Instant>,
    /// Rises when what was seen can no longer be relied upon, also by a look that is under way.
    distrusted: u64,
}

impl Authority {
    /// How long a change that another process made may go unnoticed here.
    pub(super) const GLANCE: Duration = Duration::from_millis(500);

    pub(super) async fn version(&self, state: &State) -> Result<i64, ApiError> {
        if let Some(version) = self.fresh() {
            return Ok(version);
        }
        Box::pin(self.look(state)).await
    }

    async fn look(&self, state: &State) -> Result<i64, ApiError> {
        let _alone = self.looking.lock().await;
        if let Some(version) = self.fresh() {
            return Ok(version);
        }
        let before = self.seen().distrusted;
        let at = Instant::now();
        let mut tx = state.read().await?;
        let version = principals::version(&mut tx).await?;
        tx.rollback().await?;
        let mut seen = self.seen();
        seen.version = version;
        seen.at = (seen.distrusted == before).then_some(at);
        Ok(version)
    }

    pub(super) fn distrust(&self) {
        let mut seen = self.seen();
        seen.distrusted += 1;
        seen.at = None;
    }

    fn fresh(&self) -> Option<i64> {
        let seen = self.seen();
        seen.at.filter(|at| at.elapsed() < Authority::GLANCE).map(|_| seen.version)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
