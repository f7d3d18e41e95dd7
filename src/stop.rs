//! When to stop. The first SIGINT or SIGTERM asks everything to finish what it holds; the second does not wait.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::output::say;

#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Cancelled by the first signal: finish in order.
    pub asked: CancellationToken,
    /// Cancelled by the second: skip what still takes time.
    pub hurried: CancellationToken,
}

impl Stop {
    /// Listens from now on, for as long as the process lives.
    pub fn on_signals() -> io::Result<Stop> {
        let stop = Stop::default();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let listening = stop.clone();
        tokio::spawn(async move {
            for token in [&listening.asked, &listening.hurried] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                token.cancel();
                if !listening.hurried.is_cancelled() {
                    say("stopping; once more to stop without waiting");
                }
            }
        });
        Ok(stop)
    }
}
