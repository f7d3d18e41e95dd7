//! What activities reach the world through. Clients of the outside join here as they come.

use std::sync::Mutex;
use std::sync::PoisonError;

use engine::Engine;
use sqlx::PgPool;

use crate::task_signers::TaskSigners;

/// Built once per process by the composition root.
#[derive(Debug)]
pub struct Env {
    /// The engine that calls us, for the work that is about the platform itself.
    pub(crate) engine: Engine,
    /// What signs for the platform, where this process has the key that opens it.
    signers: Option<TaskSigners>,
    /// What the demo holds; it touches nothing outside this process.
    desk: Mutex<Vec<String>>,
}

impl Env {
    pub fn new(engine: Engine) -> Env {
        Env { engine, signers: None, desk: Mutex::default() }
    }

    #[must_use]
    pub fn with_signers(mut self, signers: TaskSigners) -> Env {
        self.signers = Some(signers);
        self
    }

    pub(crate) fn signers(&self) -> Option<&TaskSigners> {
        self.signers.as_ref()
    }

    /// The platform's own database.
    pub fn pool(&self) -> &PgPool {
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
