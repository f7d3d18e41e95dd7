//! Starts a run for every webhook that has something to send. It looks when events were numbered here, and now and then
//! for retries that have come due; a webhook that is being delivered to already is left alone.

use std::time::Duration;

use domain::CorrelationId;
use engine::{Engine, Start, StartError};
use store::webhook_deliveries::{self, Due};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{DeliverWebhook, target};
use crate::sequencer::Hints;

/// The shortest pause before a retry is five times as long.
const FLOOR: Duration = Duration::from_secs(1);
/// Events of this time are delivered by one run.
const GAP: Duration = Duration::from_millis(100);

pub struct Dispatcher {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl Dispatcher {
    pub fn start(engine: &Engine, hints: &Hints) -> Dispatcher {
        let closing = CancellationToken::new();
        let task = tokio::spawn(look_out(engine.clone(), hints.clone(), closing.clone()));
        Dispatcher { closing, task }
    }

    pub async fn stop(self) {
        self.closing.cancel();
        if let Err(error) = self.task.await {
            debug!(%error, "the dispatcher of webhooks ended early");
        }
    }
}

async fn look_out(engine: Engine, hints: Hints, closing: CancellationToken) {
    let mut numbered = hints.numbered();
    loop {
        if let Err(error) = dispatch(&engine).await {
            debug!(%error, "webhooks wait for their runs");
        }
        tokio::select! {
            () = closing.cancelled() => return,
            () = sleep(FLOOR) => {}
            _ = numbered.changed() => sleep(GAP).await,
        }
    }
}

/// Starts what is due now.
pub async fn dispatch(engine: &Engine) -> Result<(), StartError> {
    let mut tx = engine.pool().begin().await?;
    webhook_deliveries::pass_over(&mut tx).await?;
    let due = webhook_deliveries::due(&mut tx).await?;
    tx.commit().await?;
    for webhook in due {
        start(engine, webhook).await?;
    }
    Ok(())
}

async fn start(engine: &Engine, due: Due) -> Result<(), StartError> {
    let options = Start {
        project_id: due.project_id,
        org_id: Some(due.org_id),
        correlation_id: CorrelationId::generate().to_string(),
        target: Some(target(due.webhook_id)),
        ..Start::default()
    };
    let mut tx = engine.pool().begin().await?;
    match engine.start(&mut tx, &DeliverWebhook { webhook_id: due.webhook_id }, options).await {
        Ok(mut started) => {
            tx.commit().await?;
            started.begin();
            Ok(())
        }
        // It goes on by itself, or is looked for again.
        Err(StartError::TargetBusy(_) | StartError::Backlog) => Ok(tx.rollback().await?),
        Err(error) => Err(error),
    }
}
