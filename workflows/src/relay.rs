//! Passes events on to NATS `JetStream`, in every process that is told where it is. It looks when events were numbered
//! here, and now and then for what others numbered. Of two processes one passes a project's events on; should both, the
//! stream takes each event once. Whatever goes wrong for everybody, the stream is opened anew and, should it be lost, made.

use std::time::Duration;

use activities::relay_events::{RelayFault, relay};
use activities::{EventStream, NatsSettings};
use engine::{Engine, Pool};
use store::event_relays;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};
use uuid::Uuid;

use crate::sequencer::Hints;

const FLOOR: Duration = Duration::from_secs(1);

/// Dropped, it stops wherever it is: nothing is lost by that.
pub struct Relay {
    closing: CancellationToken,
    task: AbortOnDropHandle<()>,
}

impl Relay {
    pub fn start(engine: &Engine, hints: &Hints, settings: NatsSettings) -> Relay {
        let closing = CancellationToken::new();
        let passing = pass_on(engine.clone(), hints.clone(), settings, closing.clone());
        Relay { closing, task: AbortOnDropHandle::new(tokio::spawn(passing)) }
    }

    pub async fn stop(self) {
        self.closing.cancel();
        if let Err(error) = self.task.await {
            debug!(%error, "the relay of events ended early");
        }
    }
}

async fn pass_on(engine: Engine, hints: Hints, settings: NatsSettings, closing: CancellationToken) {
    let mut numbered = hints.numbered();
    let mut stream = None;
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            passed = pass_all(engine.pool(), &hints, &settings, &mut stream) => {
                if let Err(error) = passed {
                    hints.not_relayed();
                    warn!(%error, "events wait to be passed on");
                }
            }
        }
        tokio::select! {
            () = closing.cancelled() => return,
            () = sleep(FLOOR) => {}
            _ = numbered.changed() => {}
        }
    }
}

async fn pass_all(
    pool: &Pool,
    hints: &Hints,
    settings: &NatsSettings,
    stream: &mut Option<EventStream>,
) -> Result<(), RelayFault> {
    let open = match stream {
        Some(open) => open,
        None => stream.insert(EventStream::open(settings).await?),
    };
    let passed = pass_behind(pool, hints, open).await;
    // Only opening makes a stream that is not there any more.
    if matches!(passed, Err(RelayFault::Nats(_))) {
        *stream = None;
    }
    passed
}

async fn pass_behind(pool: &Pool, hints: &Hints, stream: &EventStream) -> Result<(), RelayFault> {
    let made = stream.made().await?;
    let mut tx = pool.begin().await?;
    let behind: Vec<Uuid> = event_relays::behind(&mut tx, made).await?;
    tx.rollback().await?;
    for project in behind {
        match pass_project(pool, hints, stream, project).await {
            Err(RelayFault::Nats(fault)) if !fault.is_everybodys() => {
                hints.not_relayed();
                warn!(%project, error = %fault, "the events of a project wait to be passed on");
            }
            passed => passed?,
        }
    }
    Ok(())
}

async fn pass_project(
    pool: &Pool,
    hints: &Hints,
    stream: &EventStream,
    project: Uuid,
) -> Result<(), RelayFault> {
    while let Some(sent @ 1..) = relay(pool, stream, project).await? {
        hints.relayed(sent);
    }
    Ok(())
}
