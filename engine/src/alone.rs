//! A checkpoint in a transaction of its own, together with an effect in our own database: both or neither.
//!
//! The effect comes first and the guarded run update last, so the run's row is locked only briefly. Either part may be
//! repeated after contention or a lost connection; whether a lost COMMIT took effect is read off the checkpoint's token.

use std::time::Duration;

use futures::future::BoxFuture;
use sqlx::PgConnection;
use tracing::warn;
use uuid::Uuid;

use crate::checkpoint::{self, Checkpoint, Entries, Moved, is_fence};
use crate::committer::Verdict;
use crate::core::Core;
use crate::database::{is_contention, is_locked, is_outage};
use crate::fault::Fault;
use crate::held;
use crate::patience::Patience;

pub(crate) enum Alone {
    /// Both are committed; these are the journal rows the effect added.
    Moved(Moved, Entries),
    /// The checkpoint did not go through, and so neither did the effect.
    Verdict(Verdict),
    /// The effect itself failed; nothing was written.
    Fault(Fault),
    /// The incarnation ended before the outcome was known.
    Ended,
}

/// One try that did not settle the matter.
enum Unsettled {
    Again,
    /// Somebody holds what it needs. If that is the run's row alone, it says nothing of the database.
    Locked,
    CommitUnknown(Box<Checkpoint>, Entries, sqlx::Error),
}

/// What is committed together with a checkpoint. Both parts may run again and touch nothing but the connection.
pub(crate) trait Together: Send + Sync {
    /// Runs first and may add journal rows to the checkpoint.
    fn effect<'c>(&'c self, _conn: &'c mut PgConnection) -> BoxFuture<'c, Result<Entries, Fault>> {
        Box::pin(async { Ok(Entries::default()) })
    }

    /// Runs once the run's row has moved.
    fn after<'c>(&'c self, _conn: &'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) async fn write(core: &Core, template: &Checkpoint, together: &dyn Together) -> Alone {
    let mut unanswered = None;
    loop {
        let unsettled = match attempt(core, template, together).await {
            Ok(alone) => return alone,
            Err(unsettled) => unsettled,
        };
        // Only from the first trouble on: how long the effect itself takes says nothing of the database.
        if matches!(unsettled, Unsettled::Locked) && held::is_held(&core.engine.db.drives, core.run).await {
            unanswered = None;
        } else {
            unanswered.get_or_insert_with(|| core.engine.stats.write_begins());
        }
        if let Unsettled::CommitUnknown(checkpoint, added, error) = unsettled {
            warn!(%error, run = %core.run, "a commit's answer was lost; reading it back");
            match read_back(core, checkpoint.seq, checkpoint.token).await {
                Some(Some(moved)) => return Alone::Moved(moved, added),
                Some(None) => {}
                None => return Alone::Ended,
            }
        }
        if core.reins.ended() {
            return Alone::Ended;
        }
        tokio::time::sleep(Duration::from_millis(20 + u64::from(rand::random::<u8>()))).await;
    }
}

async fn attempt(core: &Core, template: &Checkpoint, together: &dyn Together) -> Result<Alone, Unsettled> {
    let mut tx = core.engine.db.drives.begin().await.map_err(|_| Unsettled::Again)?;
    let added = match together.effect(&mut tx).await {
        Ok(added) => added,
        Err(fault) => return Ok(Alone::Fault(fault)),
    };
    let _unanswered = core.engine.stats.write_begins();
    // Each try has a token of its own: reading back must not mistake an earlier one for this.
    let mut checkpoint = Checkpoint { token: Uuid::new_v4(), ..template.clone() };
    checkpoint.entries.add(&added);
    let moved = match core.engine.db.in_time(checkpoint::write(&mut tx, core.owner, &[&checkpoint])).await {
        Ok(mut moved) => moved.remove(&core.run),
        Err(error) if is_fence(&error) => None,
        Err(error) if is_locked(&error) => return Err(Unsettled::Locked),
        Err(error) if is_contention(&error) || is_outage(&error) => return Err(Unsettled::Again),
        Err(error) => return Ok(Alone::Verdict(Verdict::Refused(error.to_string()))),
    };
    let Some(moved) = moved else {
        drop(tx);
        return Ok(why_unmoved(core, &checkpoint).await.map_or(Alone::Ended, Alone::Verdict));
    };
    match core.engine.db.in_time(together.after(&mut tx)).await {
        Ok(()) => {}
        Err(error) if is_locked(&error) => return Err(Unsettled::Locked),
        Err(error) if is_contention(&error) || is_outage(&error) => return Err(Unsettled::Again),
        Err(error) => return Ok(Alone::Verdict(Verdict::Refused(error.to_string()))),
    }
    match tx.commit().await {
        Ok(()) => {
            core.engine.stats.wrote(1);
            Ok(Alone::Moved(moved, added))
        }
        Err(error) => Err(Unsettled::CommitUnknown(Box::new(checkpoint), added, error)),
    }
}

/// `Some(Some)` it is there, `Some(None)` it is certainly not, `None` the incarnation ended first.
pub(crate) async fn read_back(core: &Core, seq: i32, token: Uuid) -> Option<Option<Moved>> {
    let mut unanswered = None;
    loop {
        unanswered.get_or_insert_with(|| core.engine.stats.write_begins());
        let row = async {
            let mut tx = core.engine.db.drives.begin().await?;
            // The lock waits for any older backend to end; what it wrote is there for the second statement.
            let row =
                sqlx::query!("select request, signals from engine.run where id = $1 for update", core.run)
                    .fetch_optional(&mut *tx)
                    .await?;
            let there = sqlx::query_scalar!(
                "select token from engine.journal where run_id = $1 and seq = $2",
                core.run,
                seq
            )
            .fetch_optional(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(row.filter(|_| there == Some(token)))
        };
        match core.engine.db.in_time(row).await {
            Ok(mine) => return Some(mine.map(|r| Moved { request: r.request, signals: r.signals })),
            Err(_) if core.reins.ended() => return None,
            Err(error) if is_locked(&error) && held::is_held(&core.engine.db.drives, core.run).await => {
                unanswered = None;
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// `None` means that the incarnation ended first. Only a row that was read tells that the run is lost: a driver that took a
/// database in trouble for that would leave without letting go of a run that is still its own.
async fn why_unmoved(core: &Core, checkpoint: &Checkpoint) -> Option<Verdict> {
    let mut patience = Patience::default();
    loop {
        let row = async {
            let mut session = core.engine.db.drives.session().await?;
            let row =
                sqlx::query!("select epoch, owner, request, signals from engine.run where id = $1", core.run)
                    .fetch_optional(&mut *session)
                    .await?;
            session.commit().await?;
            Ok::<_, sqlx::Error>(row)
        };
        match core.engine.db.in_time(row).await {
            Ok(Some(r)) if r.epoch == checkpoint.epoch && r.owner == Some(core.owner) => {
                let stands = Moved { request: r.request, signals: r.signals };
                let looks = stands.came_before(checkpoint);
                return Some(if looks { Verdict::LookAgain } else { Verdict::Fenced });
            }
            Ok(_) => return Some(Verdict::Fenced),
            Err(_) if core.reins.ended() => return None,
            Err(error) => {
                warn!(%error, run = %core.run, "why a checkpoint did not go through is unknown; asking again");
                patience.wait().await;
            }
        }
    }
}
