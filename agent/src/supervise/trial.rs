//! Trying another program: it is started in the old one's place and has so long to be heard by the platform. Then it is the
//! agent, for good; otherwise it is ended, and the record says why.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::worker::{ADOPTED, REPORTED, Worker};
use super::{Supervisor, SupervisorFault};
use crate::update::{Stage, Update};

/// What did not report has nothing to finish.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Its last words are read for so long: somebody it started may hold the line open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
const LAST_LINES: usize = 5;
const LONGEST_LINE: usize = 400;

/// How a trial came out.
enum Verdict {
    Reported,
    Stopped,
    Failed(String),
}

impl Supervisor {
    /// Where the program is adopted, it is the agent until it ends; false where another has to go on.
    pub(super) async fn attempt(
        &self,
        update: Update,
        stop: &CancellationToken,
    ) -> Result<bool, SupervisorFault> {
        let program = self.home.program(&update.program);
        tracing::info!(version = update.version, program = %program.display(), "trying another program");
        let update = update.now(Stage::Trying);
        self.home.keep_update(&update)?;
        let started = Worker::start_on_trial(&program, &self.arguments, &self.on_trial);
        let (mut worker, stdout, stderr) = match started {
            Ok(started) => started,
            Err(error) => return self.give_up(update, &format!("it cannot be started: {error}")),
        };
        let words = Words::of(stderr);
        match self.verdict(&mut worker, stdout, stop).await {
            Verdict::Reported => {
                self.home.adopt(&update.program, &self.installed)?;
                tracing::info!(version = update.version, "it reported, and is the agent from now on");
                self.home.keep_update(&update.now(Stage::Adopted))?;
                worker.tell(ADOPTED).await;
                worker.until_it_ends(stop).await;
                Ok(true)
            }
            // Nobody's fault: the next start tries it again.
            Verdict::Stopped => {
                worker.end(ENDS_WITHIN).await;
                self.home.keep_update(&update.now(Stage::Staged))?;
                Ok(false)
            }
            Verdict::Failed(what_happened) => {
                worker.end(ENDS_WITHIN).await;
                self.give_up(update, &format!("{what_happened}{}", words.last().await))
            }
        }
    }

    async fn verdict<R: AsyncRead + Unpin + Send + 'static>(
        &self,
        worker: &mut Worker,
        stdout: Option<R>,
        stop: &CancellationToken,
    ) -> Verdict {
        tokio::select! {
            () = says_it_reported(stdout) => Verdict::Reported,
            ended = worker.exit() => Verdict::Failed(match ended {
                Ok(status) => format!("it ended with {status} before it had reported"),
                Err(error) => format!("it cannot be waited for: {error}"),
            }),
            () = tokio::time::sleep(self.patience) => {
                Verdict::Failed(format!("it did not report within {} s", self.patience.as_secs()))
            }
            () = stop.cancelled() => Verdict::Stopped,
        }
    }

    fn give_up(&self, update: Update, what_happened: &str) -> Result<bool, SupervisorFault> {
        tracing::error!(version = update.version, what_happened, "back to the program before it");
        self.home.keep_update(&update.refused(what_happened))?;
        let current = self.home.current(&self.installed)?;
        self.home.keep_only(&current.iter().collect::<Vec<_>>());
        Ok(false)
    }
}

/// Resolves with its word alone; whatever else it says is nobody's, and must not hold it up.
async fn says_it_reported<R: AsyncRead + Unpin + Send + 'static>(stdout: Option<R>) {
    let Some(stdout) = stdout else { return std::future::pending().await };
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if line == REPORTED {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return;
        }
    }
    std::future::pending().await
}

/// What a process complains about: passed on, and the last of it kept.
struct Words {
    kept: Arc<Mutex<VecDeque<String>>>,
    reading: Option<JoinHandle<()>>,
}

impl Words {
    fn of<R: AsyncRead + Unpin + Send + 'static>(stderr: Option<R>) -> Words {
        let kept = Arc::<Mutex<VecDeque<String>>>::default();
        let keeps = Arc::clone(&kept);
        let reading = stderr.map(|stderr| tokio::spawn(pass_on(stderr, keeps)));
        Words { kept, reading }
    }

    /// In a form that ends a sentence, or nothing where it said nothing.
    async fn last(self) -> String {
        if let Some(reading) = self.reading {
            let _ = timeout(LAST_WORDS_WITHIN, reading).await;
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            return String::new();
        }
        format!("; its last words: {}", kept.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }
}

async fn pass_on<R: AsyncRead + Unpin>(stderr: R, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(stderr).lines();
    let mut own = tokio::io::stderr();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = own.write_all(format!("{line}\n").as_bytes()).await;
        let short: String = line.trim().chars().take(LONGEST_LINE).collect();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        kept.push_back(short);
    }
}
