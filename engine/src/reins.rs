//! How the rest of the process reaches a drive: what an operator asked, and that it must stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What an operator asked of a run while it is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Pause,
    Cancel,
}

/// Held by the drive and by the crew that drives it.
#[derive(Debug)]
pub(crate) struct Reins {
    request: watch::Sender<Option<Request>>,
    /// A cancel was accepted, whatever was asked since.
    cancelling: AtomicBool,
    draining: Arc<AtomicBool>,
    /// Cut when drives must stop at once: the lease is lost or draining took too long.
    cut: CancellationToken,
    alive: CancellationToken,
    epoch: i64,
    since: Instant,
    /// The run has another owner, or none: whatever the drive still does is refused.
    taken: CancellationToken,
}

impl Reins {
    pub(crate) fn new(
        epoch: i64,
        draining: &Arc<AtomicBool>,
        cut: &CancellationToken,
        alive: &CancellationToken,
    ) -> Reins {
        Reins {
            request: watch::Sender::new(None),
            cancelling: AtomicBool::new(false),
            draining: Arc::clone(draining),
            cut: cut.clone(),
            alive: alive.clone(),
            epoch,
            since: Instant::now(),
            taken: CancellationToken::new(),
        }
    }

    pub(crate) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Whether it has been driven for longer than this.
    pub(crate) fn is_older_than(&self, long: Duration) -> bool {
        self.since.elapsed() > long
    }

    pub(crate) fn take_away(&self) {
        self.taken.cancel();
    }

    pub(crate) async fn taken_away(&self) {
        self.taken.cancelled().await;
    }

    pub(crate) fn learn(&self, request: Option<&str>) {
        let request = match request {
            Some("pause") => Some(Request::Pause),
            Some("cancel") => Some(Request::Cancel),
            _ => None,
        };
        if request == Some(Request::Cancel) {
            self.cancelling.store(true, Ordering::Release);
        }
        self.request.send_if_modified(|now| std::mem::replace(now, request) != request);
    }

    pub(crate) fn cancel_was_accepted(&self) {
        self.cancelling.store(true, Ordering::Release);
    }

    pub(crate) fn cancelling(&self) -> bool {
        self.cancelling.load(Ordering::Acquire)
    }

    pub(crate) fn request(&self) -> Option<Request> {
        *self.request.borrow()
    }

    pub(crate) fn draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn ended(&self) -> bool {
        self.alive.is_cancelled()
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.cut.child_token()
    }

    /// Resolves when the activity at hand must stop. A run that unwinds or is past its pivot is deaf to a cancel.
    pub(crate) async fn pulled(&self, deaf_to_cancel: bool) {
        let mut asked = self.request.subscribe();
        tokio::select! {
            () = self.cut.cancelled() => {}
            _ = asked.wait_for(|r| matches!(r, Some(Request::Pause)) || (!deaf_to_cancel && matches!(r, Some(Request::Cancel)))) => {}
        }
    }
}
