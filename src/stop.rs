//! When to stop. The first SIGINT, SIGTERM or SIGHUP, which a closed terminal sends, asks everything to finish what it
//! holds; a SIGINT or SIGTERM after it does not wait.

use std::fs;
use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::output::say;

#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Cancelled by the first signal: finish in order.
    pub asked: CancellationToken,
    /// Cancelled by the next that is no SIGHUP: skip what still takes time.
    pub hurried: CancellationToken,
}

impl Stop {
    /// Listens from now on, for as long as the process lives.
    pub fn on_signals() -> io::Result<Stop> {
        let stop = Stop::default();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // Whoever starts it by `nohup` wants it to outlive the terminal.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut hangup = if ignores_hangup(&status) { None } else { Some(signal(SignalKind::hangup())?) };
        let listening = stop.clone();
        tokio::spawn(async move {
            for token in [&listening.asked, &listening.hurried] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    () = closed(&mut hangup) => {}
                }
                // A terminal that closes sends several: the kernel one, the shell one, and the end of its session one.
                hangup = None;
                token.cancel();
                if !listening.hurried.is_cancelled() {
                    say("stopping; once more to stop without waiting");
                }
            }
        });
        Ok(stop)
    }
}

/// Returns when the terminal goes, for whoever listens to that.
async fn closed(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => pending().await,
    }
}

/// Whether a process with this status in `/proc` was started to ignore SIGHUP, the lowest bit of its mask.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_started_by_nohup_does_not_listen_to_the_terminal() {
        let status = |mask: &str| format!("Name:\tgpuaas\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores_hangup(&status("0000000000001001")));
        assert!(!ignores_hangup(&status("0000000000001000")));
        assert!(!ignores_hangup(""));
    }
}
