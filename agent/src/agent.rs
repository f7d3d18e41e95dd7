//! The agent's life: ask for tasks, do them, tell; and beat. Tasks of one instance take turns; whatever the platform or
//! the engine does, the loops go on.

mod reserve;
mod settings;
mod tell;

pub use settings::{KEEP_IMAGES, SPARE_NETWORKS, Settings};

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node_protocol::{
    Envelope, Key, Keyring, Outcome, Output, Progress, Refusal, Remove, Signed, Task, TaskFault,
};
use rand::Rng;
use tokio::sync::{Mutex as Turn, Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::drivers::{Driver, DriverFault, Told};
use crate::execute::Doing;
use crate::hands::{Hand, Hands};
use crate::home::{Home, HomeFault};
use crate::images::Images;
use crate::journal::{Journal, JournalFault, Verdict};
use crate::platform::{Now, Platform, PlatformFault};
use crate::relay::Relay;
use crate::report::{self, Meter};
use crate::update::Updater;
use crate::watch::Watch;

/// News of a workload wait so long for others, to be told together.
const SOON: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum AgentFault {
    #[error(transparent)]
    Home(#[from] HomeFault),
    #[error(transparent)]
    Journal(#[from] JournalFault),
    #[error(transparent)]
    Platform(#[from] PlatformFault),
    #[error("the relay: {0}")]
    Relay(#[from] DriverFault),
    #[error(
        "this node enrolled with the driver `{enrolled}` and was started with `{started}`: enrol it anew"
    )]
    OtherDriver { enrolled: String, started: &'static str },
}

pub struct Agent<D> {
    inner: Arc<Inner<D>>,
}

struct Inner<D> {
    driver: Arc<D>,
    home: Home,
    key: Key,
    platform: Platform,
    relay: Relay,
    updater: Updater,
    images: Images,
    watch: Watch,
    meter: Meter,
    /// Looks at the engine take turns, so that the later one has the higher number.
    looks: Turn<()>,
    journal: Journal,
    keyring: Mutex<Keyring>,
    hands: Hands,
    settings: Settings,
    now: Now,
}

impl<D: Driver> Agent<D> {
    /// A node that has enrolled, as its folder tells. With another driver than then it would not see what runs here, and
    /// swear that nothing does.
    pub fn open(home: Home, driver: D, settings: Settings, now: Now) -> Result<Agent<D>, AgentFault> {
        let (identity, key, keyring) = (home.identity()?, home.key()?, home.keyring()?);
        if identity.driver != driver.name() {
            return Err(AgentFault::OtherDriver { enrolled: identity.driver, started: driver.name() });
        }
        let journal = Journal::open(&home.journal())?;
        let relay = Relay::new(&identity)?;
        let updater = Updater::new(home.clone(), settings.program.clone());
        let images = Images::open(home.clone(), settings.keep_images)?;
        let platform = Platform::new(identity, key.clone(), Arc::clone(&now))?;
        let (driver, keyring, hands) = (Arc::new(driver), Mutex::new(keyring), Hands::default());
        let (watch, meter, looks) = (Watch::default(), Meter::default(), Turn::default());
        let inner = Inner {
            driver,
            home,
            key,
            platform,
            relay,
            updater,
            images,
            watch,
            meter,
            looks,
            journal,
            keyring,
            hands,
            settings,
            now,
        };
        Ok(Agent { inner: Arc::new(inner) })
    }

    /// Until `stop`, or until another program is to be tried; what is being done then is left to the next start, which finds
    /// it in the journal.
    pub async fn run(&self, stop: CancellationToken) {
        if let Err(fault) = self.inner.settle_update() {
            tracing::error!(%fault, "what became of an update cannot be told");
        }
        let ended = CancellationToken::new();
        let working = async {
            let (polling, beating) = (self.inner.poll(), self.inner.beat());
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.inner.updater.staged() => {}
                () = polling => {}
                () = beating => {}
            }
            ended.cancel();
        };
        tokio::join!(working, self.inner.keep_reserve(&ended));
    }

    /// Reports, and does nothing else, until the platform has heard one.
    pub async fn until_heard(&self) {
        for trouble in 1.. {
            if self.inner.report().await.is_some() {
                return;
            }
            sleep(self.inner.pause(trouble)).await;
        }
    }
}

impl<D: Driver> Inner<D> {
    async fn poll(self: &Arc<Self>) {
        let (tasks, slots) = (TaskTracker::new(), Arc::new(Semaphore::new(self.settings.at_once)));
        let mut trouble = 0;
        self.tell_what_is_untold().await;
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            match self.platform.next(self.settings.poll).await {
                Ok(Some(signed)) => {
                    trouble = 0;
                    let agent = Arc::clone(self);
                    tasks.spawn(async move {
                        agent.take(signed).await;
                        drop(slot);
                    });
                }
                Ok(None) => {
                    trouble = 0;
                    self.tell_what_is_untold().await;
                }
                Err(fault) => {
                    tracing::warn!(%fault, "no task could be asked for");
                    trouble += 1;
                    sleep(self.pause(trouble)).await;
                    self.tell_what_is_untold().await;
                }
            }
        }
    }

    /// Believes, judges, does and tells one task.
    async fn take(&self, signed: Signed) {
        let task = match self.believe(&signed) {
            // A signer that this node has not heard of yet may have taken over since its last report.
            Err(Refusal::UnknownSigner) => {
                self.report().await;
                self.believe(&signed)
            }
            judged => judged,
        };
        let task = match task {
            Ok(task) => task,
            // Nobody of ours asked, so nobody is answered.
            Err(refusal) => return tracing::error!(%refusal, "a task that is not the platform's was dropped"),
        };
        let span = tracing::info_span!(
            "task",
            task_id = %task.task_id,
            kind = task.kind,
            correlation_id = task.correlation_id,
            app_instance_id = task.instance_id.map(tracing::field::display),
        );
        self.see_to(&task).instrument(span).await;
    }

    fn believe(&self, signed: &Signed) -> Result<Envelope, Refusal> {
        Envelope::open(signed, &self.keyring(), self.platform.node_id())
    }

    async fn see_to(&self, task: &Envelope) {
        if Task::only_looks(&task.kind) {
            return self.look(task).await;
        }
        let Some(hand) = self.hands.take(task) else {
            return tracing::debug!("a task that is in hand was handed out again");
        };
        let (told, news) = Told::new(hand.overtaken.clone());
        let outcome = match task.in_time((self.now)()) {
            Ok(()) => tokio::select! {
                outcome = self.in_turn(task, &hand, &told) => outcome,
                never = self.keep_lease(task, news) => match never {},
            },
            Err(refusal) => Ok(Outcome::Refused { refusal }),
        };
        match outcome {
            Ok(outcome) => {
                tracing::info!(outcome = outcome.status().as_str(), "a task was seen to");
                if matches!(outcome, Outcome::Succeeded { output: Output::Healthy { .. } }) {
                    // A report comes first: whoever learns that it serves finds it healthy.
                    self.report().await;
                }
                self.tell(task.task_id, &task.idempotency_key, &outcome).await;
            }
            // Without its journal the agent does nothing: it could not know what it did.
            Err(fault) => tracing::error!(%fault, task = %task.task_id, "the journal cannot be written"),
        }
    }

    /// A look waits for no other task and leaves nothing in the journal. Whoever asked waits for it now, so it is told once.
    async fn look(&self, envelope: &Envelope) {
        let refused = |refusal| Outcome::Refused { refusal };
        let outcome = match (envelope.in_time((self.now)()), Task::read(&envelope.kind, &envelope.input)) {
            (Err(refusal), _) => refused(refusal),
            (_, Err(_)) => refused(Refusal::BadInput),
            (Ok(()), Ok(task)) => {
                let (told, _) = Told::new(CancellationToken::new());
                self.perform(envelope, &task, &told).await
            }
        };
        let told = self.platform.result(envelope.task_id, &envelope.idempotency_key, &outcome).await;
        if let Err(fault) = told {
            tracing::debug!(%fault, task = %envelope.task_id, "nobody waits for this look any more");
        }
    }

    /// Time was judged when the task came: waiting for its turn does not make it late. A removal is written down, and whatever
    /// it makes pointless is told so, before it waits.
    async fn in_turn(
        &self,
        envelope: &Envelope,
        hand: &Hand<'_>,
        told: &Told,
    ) -> Result<Outcome, JournalFault> {
        let refused = |refusal| Ok(Outcome::Refused { refusal });
        let task = match Task::read(&envelope.kind, &envelope.input) {
            Ok(task) => task,
            Err(TaskFault::UnknownKind(_)) => return refused(Refusal::UnknownKind),
            Err(TaskFault::BadInput { .. }) => return refused(Refusal::BadInput),
        };
        let removal = match &task {
            Task::OciRemove(remove) | Task::ComposeRemove(remove) => Some(remove),
            _ => None,
        };
        let mut turn = None;
        if removal.is_none() {
            turn = Some(hand.turn.lock().await);
        }
        match self.journal.admit(envelope, needed(&task))? {
            Verdict::Refuse(refusal) => return refused(refusal),
            Verdict::Known(outcome) => return Ok(outcome),
            Verdict::Do => {}
        }
        if let Some(Remove { instance_id, generations, .. }) = removal {
            self.journal.bury(*instance_id, *generations)?;
            self.hands.overtake(*instance_id, *generations);
            turn = Some(hand.turn.lock().await);
        }
        let outcome = self.perform(envelope, &task, told).await;
        self.journal.finish(&envelope.idempotency_key, &outcome)?;
        drop(turn);
        Ok(outcome)
    }

    async fn perform(&self, envelope: &Envelope, task: &Task, told: &Told) -> Outcome {
        let doing = Doing {
            driver: &*self.driver,
            relay: &self.relay,
            platform: &self.platform,
            updater: &self.updater,
            images: &self.images,
            key: &self.key,
            task: envelope,
            now: &self.now,
            told,
            people: &self.settings.people,
        };
        doing.perform(task).await
    }

    /// Telling of progress keeps the lease, while a task waits for its turn too; a third of it leaves room for two that get
    /// lost.
    async fn keep_lease(&self, envelope: &Envelope, mut news: watch::Receiver<(u64, u64)>) -> Infallible {
        let every = Duration::from_secs(u64::from(envelope.lease_seconds.max(3)) / 3);
        loop {
            tokio::select! {
                _ = news.changed() => sleep(Duration::from_secs(1)).await,
                () = sleep(every) => {}
            }
            let (bytes_done, bytes_total) = *news.borrow_and_update();
            let progress = Progress::of_bytes(bytes_done, bytes_total);
            if let Err(fault) = self.platform.progress(envelope.task_id, &progress).await {
                tracing::debug!(%fault, "progress could not be told");
            }
        }
    }

    /// An update outlives the process that was asked for it, so its task is answered by whoever comes after.
    fn settle_update(&self) -> Result<(), AgentFault> {
        if let Some((key, outcome)) = self.updater.decided()? {
            self.journal.settle(&key, &outcome)?;
        }
        Ok(())
    }

    async fn beat(&self) {
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
    async fn report(&self) -> Option<Duration> {
        let _look = self.looks.lock().await;
        let version = &self.settings.agent_version;
        let told = report::heartbeat(&self.driver, &self.watch, &self.meter, &self.journal, version);
        let beat = told.await.inspect_err(|fault| tracing::warn!(%fault, "the engine cannot be looked at"));
        let mut beat = beat.ok()?;
        beat.keyring_version = Some(self.keyring().version);
        beat.asks_for_images = self.images.are_due((self.now)());
        let heard = self.platform.heartbeat(&beat).await;
        let answer = heard.inspect_err(|fault| tracing::warn!(%fault, "the heartbeat was not heard")).ok()?;
        for list in answer.handovers.iter().chain([&answer.keyring]) {
            self.follow(list);
        }
        if let Some(keep) = &answer.keep_images {
            self.images.sweep(&*self.driver, keep, (self.now)()).await;
        }
        let asked = Duration::from_secs(u64::from(answer.heartbeat_seconds.max(1)));
        Some(asked.min(self.settings.longest_beat))
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

    fn keyring(&self) -> std::sync::MutexGuard<'_, Keyring> {
        self.keyring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Doubling, with full jitter, so that many nodes do not come back together.
    fn pause(&self, trouble: u32) -> Duration {
        let most =
            Duration::from_millis(250).saturating_mul(1 << trouble.min(10)).min(self.settings.longest_pause);
        most.mul_f64(rand::rng().random::<f64>())
    }
}

/// The generation whose workload must not have been removed for the task to make sense.
fn needed(task: &Task) -> Option<i64> {
    match task {
        Task::OciLaunch(launch) => Some(launch.workload.generation),
        Task::ComposeLaunch(launch) => launch.members.iter().map(|member| member.generation).min(),
        Task::OciControl(control) | Task::ComposeControl(control) => Some(control.generation),
        Task::DiagHealthProbe(probe) => Some(probe.generation),
        Task::OciRemove(_)
        | Task::ComposeRemove(_)
        | Task::DiagLogs(_)
        | Task::SshInstallAuthorizedKeys(_)
        | Task::AgentSelfUpdate(_) => None,
    }
}
