//! What the agent has in hand: one key once, however often it is handed out; the tasks of one instance one after the other;
//! and a removal ahead of the launches that it makes pointless.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node_protocol::{Envelope, Generations};
use tokio::sync::{Mutex as Turn, Notify};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct Hands {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Default)]
struct Held {
    tasks: HashMap<String, Task>,
    turns: HashMap<Uuid, Arc<Turn<()>>>,
}

struct Task {
    instance: Option<Uuid>,
    generation: i64,
    overtaken: CancellationToken,
}

/// One task in hand; it is let go of when this is dropped.
pub(crate) struct Hand<'a> {
    hands: &'a Hands,
    key: String,
    /// The instance's turn; a task of no instance has one of its own.
    pub(crate) turn: Arc<Turn<()>>,
    /// A removal came that makes the task pointless.
    pub(crate) overtaken: CancellationToken,
}

impl Hands {
    /// `None` where the task is in hand already: whoever has it tells what becomes of it.
    pub(crate) fn take(&self, task: &Envelope) -> Option<Hand<'_>> {
        let mut held = self.held();
        let key = task.idempotency_key.clone();
        if held.tasks.contains_key(&key) {
            return None;
        }
        held.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = match task.instance_id {
            Some(instance) => Arc::clone(held.turns.entry(instance).or_default()),
            None => Arc::default(),
        };
        let overtaken = CancellationToken::new();
        let (instance, generation) = (task.instance_id, task.generation);
        held.tasks.insert(key.clone(), Task { instance, generation, overtaken: overtaken.clone() });
        self.changed.notify_one();
        Some(Hand { hands: self, key, turn, overtaken })
    }

    /// Whether somebody sees to the task, and tells what becomes of it.
    pub(crate) fn have(&self, key: &str) -> bool {
        self.held().tasks.contains_key(key)
    }

    /// Whatever is under way for these generations need not be finished. The removal itself is never among them: it does not
    /// listen.
    pub(crate) fn overtake(&self, instance: Uuid, generations: Generations) {
        let held = self.held();
        let meant = held.tasks.values().filter(|task| task.instance == Some(instance));
        for task in meant.filter(|task| generations.contain(task.generation)) {
            task.overtaken.cancel();
        }
    }

    pub(crate) fn are_empty(&self) -> bool {
        self.held().tasks.is_empty()
    }

    /// Until a task was taken or let go of. One waits at a time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Until nothing was in hand for so long.
    pub(crate) async fn quiet(&self, time: Duration) {
        loop {
            if !self.are_empty() {
                self.changed().await;
            } else if timeout(time, self.changed()).await.is_err() {
                return;
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        self.hands.held().tasks.remove(&self.key);
        self.hands.changed.notify_one();
    }
}
