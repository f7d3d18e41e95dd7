//! The agent's life: ask for tasks, do them, tell; and beat. Tasks of one instance take turns; whatever the platform or
//! the engine does, the loops go on.

mod beat;
mod places;
mod reserve;
mod settings;
mod take;
mod tell;

pub use settings::{KEEP_IMAGES, SPARE_NETWORKS, Settings};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node_protocol::{Key, Keyring};
use rand::Rng;
use tokio::sync::Mutex as Turn;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::places::Places;
use crate::drivers::{Driver, DriverFault};
use crate::hands::Hands;
use crate::home::{Home, HomeFault};
use crate::images::Images;
use crate::journal::{Journal, JournalFault};
use crate::platform::{Now, Platform, PlatformFault};
use crate::relay::Relay;
use crate::report::Meter;
use crate::update::Updater;
use crate::watch::Watch;

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
    /// Where people reach this machine, until the platform has heard it.
    new_address: Mutex<Option<String>>,
    /// Looks at the engine take turns, so that the later one has the higher number.
    looks: Turn<()>,
    journal: Journal,
    keyring: Mutex<Keyring>,
    hands: Hands,
    places: Places,
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
        let (places, new_address) = (Places::new(&settings), Mutex::new(settings.address.clone()));
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
            new_address,
            looks,
            journal,
            keyring,
            hands,
            places,
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
        let tasks = TaskTracker::new();
        let mut trouble = 0;
        self.tell_what_is_untold().await;
        loop {
            let Some(room) = self.places.one_more().await else { return };
            match self.platform.next(self.settings.poll).await {
                Ok(Some(signed)) => {
                    trouble = 0;
                    let agent = Arc::clone(self);
                    tasks.spawn(async move {
                        agent.take(signed).await;
                        drop(room);
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

    /// An update outlives the process that was asked for it, so its task is answered by whoever comes after.
    fn settle_update(&self) -> Result<(), AgentFault> {
        if let Some((key, outcome)) = self.updater.decided()? {
            self.journal.settle(&key, &outcome)?;
        }
        Ok(())
    }

    fn keyring(&self) -> MutexGuard<'_, Keyring> {
        self.keyring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_address(&self) -> MutexGuard<'_, Option<String>> {
        self.new_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Doubling, with full jitter, so that many nodes do not come back together.
    fn pause(&self, trouble: u32) -> Duration {
        let most =
            Duration::from_millis(250).saturating_mul(1 << trouble.min(10)).min(self.settings.longest_pause);
        most.mul_f64(rand::rng().random::<f64>())
    }
}
