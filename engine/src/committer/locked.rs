//! A row that somebody holds for long, an operator's session or a process that hangs, keeps its own run from going on and
//! nobody else's: that run leaves its lane until the row is free. It says nothing of how well the database keeps up.

use std::sync::Arc;

use futures::future::BoxFuture;
use tracing::warn;

use super::{Claiming, Lane, Pending};
use crate::held;
use crate::patience::Patience;

impl Lane {
    /// Those whose rows are free are left to the lane; the others are written once theirs are.
    pub(super) async fn set_apart_locked(self: &Arc<Self>, part: Vec<Pending>) -> Vec<Pending> {
        self.stats.contended();
        let runs = part.iter().map(|(checkpoint, _)| checkpoint.run).collect();
        let free = held::free_among(&self.db.lanes, runs).await;
        let (free, locked): (Vec<Pending>, Vec<Pending>) =
            part.into_iter().partition(|(checkpoint, _)| free.contains(&checkpoint.run));
        for pending in locked {
            warn!(run = %pending.0.run, "somebody holds a run's row; its checkpoint waits apart");
            tokio::spawn(Arc::clone(self).write_when_free(pending));
        }
        free
    }

    /// The same of claims. Nobody is driven yet, so a run whose row is held is left to a later fetch.
    pub(super) async fn put_off_locked(&self, part: Vec<Claiming>) -> Vec<Claiming> {
        self.stats.contended();
        let runs = part.iter().map(|(wanted, _)| wanted.run).collect();
        let free = held::free_among(&self.db.lanes, runs).await;
        let (free, locked): (Vec<Claiming>, Vec<Claiming>) =
            part.into_iter().partition(|(wanted, _)| free.contains(&wanted.run));
        for (wanted, reply) in locked {
            warn!(run = %wanted.run, "somebody holds a run's row; it is claimed later");
            let _ = reply.send(None);
        }
        free
    }

    /// Boxed, because it ends with a write, which may come back here.
    fn write_when_free(self: Arc<Self>, pending: Pending) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut patience = Patience::default();
            let written = async {
                while held::is_held(&self.db.lanes, pending.0.run).await {
                    patience.wait().await;
                }
                self.write(vec![pending]).await;
            };
            tokio::select! {
                () = self.alive.cancelled() => {}
                () = written => {}
            }
        })
    }
}
