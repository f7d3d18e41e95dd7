//! One process of the agent. It hangs by its standard input: when that closes, because its supervisor lets go or is killed, it
//! ends. On trial it says on its standard output that the platform heard it, and hears on its standard input that it may go on.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What a program on trial says once a heartbeat of it was taken.
pub const REPORTED: &str = "the platform has heard this agent";
/// What it is told then.
pub const ADOPTED: &str = "go on";

/// How long a process that is let go may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

pub(super) struct Worker {
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Worker {
    pub(super) fn start(program: &Path, arguments: &[OsString]) -> io::Result<Worker> {
        Worker::spawn(Command::new(program).args(arguments))
    }

    /// With what it says and what it complains about.
    pub(super) fn start_on_trial(
        program: &Path,
        arguments: &[OsString],
        on_trial: &OsString,
    ) -> io::Result<(Worker, Option<ChildStdout>, Option<ChildStderr>)> {
        let mut command = Command::new(program);
        command.args(arguments).arg(on_trial).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut worker = Worker::spawn(&mut command)?;
        let (stdout, stderr) = (worker.child.stdout.take(), worker.child.stderr.take());
        Ok((worker, stdout, stderr))
    }

    /// In a group of its own, so that Ctrl-C is the supervisor's to answer.
    fn spawn(command: &mut Command) -> io::Result<Worker> {
        let mut child = command.stdin(Stdio::piped()).kill_on_drop(true).process_group(0).spawn()?;
        let lifeline = child.stdin.take();
        Ok(Worker { child, lifeline })
    }

    pub(super) async fn exit(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// One that cannot be told is about to end.
    pub(super) async fn tell(&mut self, word: &str) {
        if let Some(lifeline) = &mut self.lifeline {
            let _ = lifeline.write_all(format!("{word}\n").as_bytes()).await;
        }
    }

    /// By itself, or because it is asked to.
    pub(super) async fn until_it_ends(&mut self, stop: &CancellationToken) {
        tokio::select! {
            ended = self.child.wait() => match ended {
                Ok(status) => tracing::info!(%status, "the agent's process ended"),
                Err(error) => tracing::error!(%error, "the agent's process cannot be waited for"),
            },
            () = stop.cancelled() => self.end(ENDS_WITHIN).await,
        }
    }

    /// Lets it go, and does not wait for long.
    pub(super) async fn end(&mut self, within: Duration) {
        self.lifeline = None;
        if timeout(within, self.child.wait()).await.is_err() {
            tracing::warn!("the agent's process does not end by itself and is killed");
            let _ = self.child.kill().await;
        }
    }
}
