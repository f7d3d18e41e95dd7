//! What activities reach the world through. Clients of the outside join here as they come.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use clients::blobs::{BlobFault, BlobName, Blobs};
use clients::registry::{Registry, RegistryFault};
use clients::webhook::WebhookSender;
use domain::artifact;
use engine::{Engine, Fault, Pool, Retry};
use store::app_artifacts::AppArtifact;

use crate::deliver_due::Places;
use crate::task_signers::TaskSigners;

/// Built once per process by the composition root.
#[derive(Debug)]
pub struct Env {
    /// The engine that calls us, for the work that is about the platform itself.
    pub(crate) engine: Engine,
    /// What signs for the platform, where this process has the key that opens it.
    signers: Option<TaskSigners>,
    /// Where images are, and where blobs, as far as this process was told.
    registry: Option<Registry>,
    blobs: Option<Blobs>,
    /// What sends events to webhooks.
    webhooks: Option<WebhookSender>,
    /// How many of them are delivered to at once.
    pub(crate) deliveries: Places,
    /// What the demo holds; it touches nothing outside this process.
    desk: Mutex<Vec<String>>,
}

impl Env {
    pub fn new(engine: Engine) -> Env {
        let deliveries = Places::among(engine.settings().slots);
        Env {
            engine,
            signers: None,
            registry: None,
            blobs: None,
            webhooks: None,
            deliveries,
            desk: Mutex::default(),
        }
    }

    #[must_use]
    pub fn with_signers(mut self, signers: TaskSigners) -> Env {
        self.signers = Some(signers);
        self
    }

    /// What seals and signs. A process without the key leaves to others what needs it.
    pub(crate) fn signers(&self) -> Result<&TaskSigners, Fault> {
        let missing = "this process has no sealing key, so it can neither seal tasks nor sign receipts";
        self.signers.as_ref().ok_or_else(|| Fault::needs_operator("no_sealing_key", missing))
    }

    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Env {
        self.registry = Some(registry);
        self
    }

    pub(crate) fn registry(&self) -> Result<&Registry, Fault> {
        let missing =
            || Fault::needs_operator("no_registry", "no image registry is configured for this process");
        self.registry.as_ref().ok_or_else(missing)
    }

    /// The engine itself, for runs that start others.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    #[must_use]
    pub fn with_blobs(mut self, blobs: Blobs) -> Env {
        self.blobs = Some(blobs);
        self
    }

    pub(crate) fn blobs(&self) -> Result<&Blobs, Fault> {
        let missing =
            || Fault::needs_operator("no_artifact_store", "no artifact store is configured for this process");
        self.blobs.as_ref().ok_or_else(missing)
    }

    #[must_use]
    pub fn with_webhooks(mut self, webhooks: WebhookSender) -> Env {
        self.webhooks = Some(webhooks);
        self
    }

    pub(crate) fn webhooks(&self) -> Result<&WebhookSender, Fault> {
        let missing = || Fault::needs_operator("no_webhook_sender", "this process sends nothing to webhooks");
        self.webhooks.as_ref().ok_or_else(missing)
    }

    /// The platform's own database.
    pub fn pool(&self) -> &Pool {
        self.engine.pool()
    }

    pub(crate) fn put_on_desk(&self, thing: &str) {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if !desk.iter().any(|t| t == thing) {
            desk.push(thing.to_owned());
        }
    }

    pub(crate) fn take_off_desk(&self, thing: &str) {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).retain(|t| t != thing);
    }

    /// What lies on the demo's desk.
    pub fn desk(&self) -> Vec<String> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What stands outside may be away for a day and more: these are a thousand tries, two and a half minutes apart on average.
pub(crate) const OUTAGE: Retry = Retry::times(1000).at_most(Duration::from_secs(300));

/// A registry that does not answer, or has no room, is waited for; what it says on purpose is for a person to read.
pub(crate) fn registry_trouble(fault: RegistryFault) -> Fault {
    match fault {
        RegistryFault::Unavailable(why) => Fault::retry("registry_unavailable", why),
        RegistryFault::StorageFull(why) => Fault::retry("registry_storage_full", why),
        fault => Fault::needs_operator("registry_refused", fault.to_string()),
    }
}

/// A store that does not answer, or has no room, is waited for.
pub(crate) fn blob_trouble(fault: BlobFault) -> Fault {
    match fault {
        BlobFault::Unavailable(why) => Fault::retry("artifact_store_unavailable", why),
        BlobFault::Busy | BlobFault::NoRoom => Fault::retry("artifact_store_busy", fault.to_string()),
        fault => Fault::needs_operator("artifact_store_refused", fault.to_string()),
    }
}

pub(crate) fn blob_name(artifact: &AppArtifact) -> BlobName {
    let key = artifact::key_of(artifact.source_uri.as_deref().unwrap_or_default()).to_owned();
    BlobName { key, intent: artifact.intent_id }
}
