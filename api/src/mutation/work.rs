//! The transaction of a change. It ends before the answer leaves, however the handler ends: what it locked, the
//! idempotency key above all, is free when the caller asks again.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::{PgConnection, PgTransaction};

/// Where a transaction goes that was not committed. The gate ends it.
#[derive(Clone, Default)]
pub(crate) struct Leftover(Arc<Mutex<Option<PgTransaction<'static>>>>);

impl Leftover {
    pub(crate) async fn end(&self) {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tx) = left
            && let Err(error) = Box::pin(tx.rollback()).await
        {
            tracing::debug!(%error, "a transaction ended with its connection");
        }
    }
}

pub(crate) struct Work {
    tx: Option<PgTransaction<'static>>,
    leftover: Leftover,
}

impl Work {
    pub(super) fn new(tx: PgTransaction<'static>, leftover: Leftover) -> Work {
        Work { tx: Some(tx), leftover }
    }

    pub(super) async fn commit(mut self) -> sqlx::Result<()> {
        match self.tx.take() {
            Some(tx) => tx.commit().await,
            None => Ok(()),
        }
    }

    pub(super) async fn rollback(mut self) -> sqlx::Result<()> {
        match self.tx.take() {
            Some(tx) => tx.rollback().await,
            None => Ok(()),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(tx) = self.tx.take() {
            *self.leftover.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx);
        }
    }
}

#[expect(clippy::expect_used, reason = "the transaction leaves only when the work itself ends")]
impl Deref for Work {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        self.tx.as_ref().expect("work has its transaction until it ends")
    }
}

#[expect(clippy::expect_used, reason = "the transaction leaves only when the work itself ends")]
impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.tx.as_mut().expect("work has its transaction until it ends")
    }
}
