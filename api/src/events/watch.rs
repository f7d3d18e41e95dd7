//! Wakes the streams of projects that have new events. One look at the counters serves every stream of the process, and
//! nobody looks while nobody follows; a stream that waits holds no connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::outbox;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use crate::state::State;

/// What other processes number comes without a hint, so the watch also looks by itself this often: one small query for all
/// projects that somebody follows, and an event is in its streams within a tenth of a second wherever it was written.
const FLOOR: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(crate) struct EventWatch {
    followed: Mutex<Followed>,
}

#[derive(Default)]
struct Followed {
    /// The newest number of each project that somebody follows.
    projects: HashMap<Uuid, watch::Sender<i64>>,
    watched: bool,
}

/// A stream's ear.
pub(crate) struct Watching(watch::Receiver<i64>);

impl Watching {
    /// Returns once the project has an event after this number.
    pub(crate) async fn beyond(&mut self, seq: i64) {
        if self.0.wait_for(|newest| *newest > seq).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl EventWatch {
    pub(crate) fn watch(self: &Arc<EventWatch>, state: &State, project: Uuid) -> Watching {
        let mut followed = self.followed();
        let ear = followed.projects.entry(project).or_default().subscribe();
        if !followed.watched {
            followed.watched = true;
            tokio::spawn(look_out(Arc::clone(self), state.clone()));
        }
        Watching(ear)
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom to look for; nobody ends the watch, and whoever comes next starts a new one.
    fn projects(&self) -> Vec<Uuid> {
        let mut followed = self.followed();
        followed.projects.retain(|_, newest| newest.receiver_count() > 0);
        followed.watched = !followed.projects.is_empty();
        followed.projects.keys().copied().collect()
    }

    fn tell(&self, progress: Vec<(Uuid, i64)>) {
        let followed = self.followed();
        for (project, seq) in progress {
            if let Some(newest) = followed.projects.get(&project) {
                newest.send_if_modified(|newest| std::mem::replace(newest, seq) != seq);
            }
        }
    }
}

async fn look_out(watch: Arc<EventWatch>, state: State) {
    let mut numbered = state.hints.numbered();
    loop {
        let projects = watch.projects();
        if projects.is_empty() || state.draining.is_cancelled() {
            return;
        }
        match look(&state, &projects).await {
            Ok(progress) => watch.tell(progress),
            Err(error) => tracing::debug!(%error, "the order of events could not be read"),
        }
        tokio::select! {
            _ = numbered.changed() => {}
            () = state.draining.cancelled() => return,
            () = sleep(FLOOR) => {}
        }
    }
}

async fn look(state: &State, projects: &[Uuid]) -> sqlx::Result<Vec<(Uuid, i64)>> {
    let mut tx = state.read().await?;
    let progress = outbox::progress(&mut tx, projects).await?;
    tx.rollback().await?;
    Ok(progress)
}
