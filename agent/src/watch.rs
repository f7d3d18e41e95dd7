//! Whether workloads serve, for as long as they run. Each that says how it is asked is asked at its own interval, from outside,
//! and the last verdict is in every report. A verdict that changes asks for a report at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node_protocol::{Health, Probe, WorkloadState};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::drivers::{Driver, Seen};

/// One answer that went missing is no illness.
const UNWELL_AFTER: u32 = 2;
/// How long a report waits for the first verdict on what it shows for the first time.
const FIRST_VERDICT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Watch {
    /// By the container's name.
    watched: Mutex<HashMap<String, Watched>>,
    news: Arc<Notify>,
}

struct Watched {
    probe: Probe,
    /// On the node's loopback address; it may change when the container starts again.
    port: Option<u16>,
    verdict: Verdict,
    asking: JoinHandle<()>,
}

/// `None` until it was asked once.
type Verdict = Arc<watch::Sender<Option<Health>>>;

impl Drop for Watched {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

impl Watch {
    /// Asks what is there and nothing else; answers how each of them is.
    pub(crate) async fn follow<D: Driver>(&self, driver: &Arc<D>, seen: &[Seen]) -> Vec<Health> {
        self.watched().retain(|name, _| seen.iter().any(|seen| seen.name == *name));
        for one in seen {
            self.ask(driver, one);
        }
        let deadline = Instant::now() + FIRST_VERDICT;
        let mut verdicts: Vec<_> = self.watched().values().map(|one| one.verdict.subscribe()).collect();
        for verdict in &mut verdicts {
            // One that takes longer is told with a later report.
            let _ = timeout_at(deadline, verdict.wait_for(Option::is_some)).await;
        }
        seen.iter().map(|seen| self.health(seen)).collect()
    }

    /// Until a verdict has changed.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    fn ask<D: Driver>(&self, driver: &Arc<D>, seen: &Seen) {
        let Some(probe) = seen.probe.as_ref().filter(|_| seen.state == WorkloadState::Running) else {
            return;
        };
        let (port, mut watched) = (seen.asked_on(Some(probe.port)), self.watched());
        let known = watched.get(&seen.name);
        if known.is_some_and(|known| known.probe == *probe && known.port == port) {
            return;
        }
        // What was known of it stays until it was asked again.
        let verdict =
            known.map_or_else(|| Arc::new(watch::Sender::new(None)), |one| Arc::clone(&one.verdict));
        let asking = Asking {
            driver: Arc::clone(driver),
            seen: seen.clone(),
            probe: probe.clone(),
            verdict: Arc::clone(&verdict),
            news: Arc::clone(&self.news),
        };
        let asking = tokio::spawn(asking.go_on());
        watched.insert(seen.name.clone(), Watched { probe: probe.clone(), port, verdict, asking });
    }

    /// What does not run does not serve, and of what nobody asks nobody knows.
    fn health(&self, seen: &Seen) -> Health {
        match seen.state {
            WorkloadState::Created => Health::Unknown,
            WorkloadState::Exited | WorkloadState::Restarting => Health::Unhealthy,
            WorkloadState::Running => {
                let verdict = self.watched().get(&seen.name).and_then(|one| *one.verdict.borrow());
                verdict.unwrap_or(Health::Unknown)
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Asking<D> {
    driver: Arc<D>,
    seen: Seen,
    probe: Probe,
    verdict: Verdict,
    news: Arc<Notify>,
}

impl<D: Driver> Asking<D> {
    async fn go_on(self) {
        let interval = Duration::from_secs(u64::from(self.probe.interval_seconds.max(1)));
        let grace = Duration::from_secs(u64::from(self.probe.grace_seconds));
        let (begun, mut missed) = (Instant::now(), 0);
        loop {
            let verdict = if self.driver.serves(&self.seen, &self.probe).await {
                missed = 0;
                Health::Healthy
            } else {
                missed += 1;
                let before = self.verdict.borrow().unwrap_or(Health::Unknown);
                // What never served yet has its grace period to begin.
                let starts = before == Health::Unknown && begun.elapsed() < grace;
                if starts || missed < UNWELL_AFTER { before } else { Health::Unhealthy }
            };
            if self.verdict.send_replace(Some(verdict)) != Some(verdict) {
                self.news.notify_one();
            }
            sleep(interval).await;
        }
    }
}
