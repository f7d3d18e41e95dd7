//! Wakes the long polls of nodes that have something to do. One look at the open tasks serves every node that waits, and
//! nobody looks while nobody waits; a poll that waits holds no connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::Engine;
use store::node_tasks;
use tokio::sync::Notify;
use tokio::time::sleep;
use uuid::Uuid;

/// Tasks that other processes made come without a hint, so the watch also looks by itself this often.
const FLOOR: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct TaskWatch {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    nodes: HashMap<Uuid, (Arc<Notify>, usize)>,
    watched: bool,
}

/// A place among those who wait; given back when it is dropped.
pub(crate) struct Place<'a> {
    watch: &'a TaskWatch,
    node: Uuid,
    bell: Arc<Notify>,
}

impl TaskWatch {
    /// Take a place before looking for a task: one that comes in between is then heard, not missed.
    pub(crate) fn place(self: &Arc<TaskWatch>, node: Uuid, engine: &Engine) -> Place<'_> {
        let mut waiting = self.waiting();
        let (bell, places) = waiting.nodes.entry(node).or_default();
        *places += 1;
        let bell = Arc::clone(bell);
        if !waiting.watched {
            waiting.watched = true;
            tokio::spawn(watch(Arc::clone(self), engine.clone()));
        }
        Place { watch: self, node, bell }
    }

    /// Wakes the node's poll in this process; another process's watch finds the task by itself.
    pub(crate) fn call(&self, node: Uuid) {
        if let Some((bell, _)) = self.waiting().nodes.get(&node) {
            bell.notify_one();
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when nobody waits any more; whoever comes next starts a new watch.
    fn goes_on(&self) -> bool {
        let mut waiting = self.waiting();
        waiting.watched = !waiting.nodes.is_empty();
        waiting.watched
    }
}

impl Place<'_> {
    pub(crate) async fn called(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.watch.waiting();
        if let Some((_, places)) = waiting.nodes.get_mut(&self.node) {
            *places -= 1;
            if *places == 0 {
                waiting.nodes.remove(&self.node);
            }
        }
    }
}

/// A run that gives a node a task comes to rest right after, which is the hint to look at once.
async fn watch(watch: Arc<TaskWatch>, engine: Engine) {
    let mut rests = engine.rests();
    while watch.goes_on() {
        match look(&engine).await {
            Ok(nodes) => {
                let waiting = watch.waiting();
                for (bell, _) in nodes.iter().filter_map(|node| waiting.nodes.get(node)) {
                    bell.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "the open tasks could not be read"),
        }
        tokio::select! {
            _ = rests.recv() => {}
            () = sleep(FLOOR) => {}
        }
    }
}

async fn look(engine: &Engine) -> sqlx::Result<Vec<Uuid>> {
    let mut tx = engine.pool().begin().await?;
    node_tasks::nodes_with_work(&mut tx).await
}
