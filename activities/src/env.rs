//! What activities reach the world through. Clients of the outside join here as they come.

use std::sync::Mutex;
use std::sync::PoisonError;

/// Built once per process by the composition root.
#[derive(Debug, Default)]
pub struct Env {
    /// What the demo holds; it touches nothing outside this process.
    desk: Mutex<Vec<String>>,
}

impl Env {
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
