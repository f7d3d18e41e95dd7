//! What every process does for all of them, and again after a moment: recovery, schedules, the look at the promises, retention.

use std::sync::Arc;

use tokio::runtime::Handle;
use tracing::{error, warn};

use crate::engine::Engine;
use crate::invariants::Watch;
use crate::workers::Crew;
use crate::{reaper, retention, schedule, signal};

/// On a thread and runtime of its own: an activity that blocks a worker thread may stall all timers and sockets of the
/// workers' runtime, and must not keep recovery from noticing it.
pub(crate) fn apart<E: Send + Sync + 'static>(crew: Arc<Crew<E>>) {
    let (alive, drives) = (crew.alive.clone(), Handle::current());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let begun = runtime.and_then(|runtime| {
        let tend = move || runtime.block_on(tend_loop(crew, drives));
        std::thread::Builder::new().name("tend".into()).spawn(tend)
    });
    if let Err(error) = begun {
        error!(%error, "no thread for recovery; this incarnation ends");
        alive.cancel();
    }
}

/// The reaper, schedules and retention, each idempotent and run by every process.
async fn tend_loop<E: Send + Sync + 'static>(crew: Arc<Crew<E>>, drives: Handle) {
    let engine = Engine { inner: Arc::clone(&crew.engine) };
    let shelf = crew.engine.db.shelf_apart();
    let (mut round, mut watch, mut behind) = (0u32, Watch::new(), false);
    loop {
        // Where a step blocks the thread that watched the sockets of all drives, another takes over when it wakes.
        drives.spawn(async {});
        if let Err(error) = shelf.in_time(reaper::reap(&crew.engine, &shelf)).await {
            warn!(%error, "the reaper's sweep failed");
        }
        if let Err(error) = shelf.in_time(schedule::fire_due(&engine, &shelf)).await {
            warn!(%error, "could not fire schedules");
        }
        if round.is_multiple_of(60) {
            if let Err(error) = shelf.in_time(signal::settle_leftovers(&shelf)).await {
                warn!(%error, "could not settle signals that nobody took");
            }
            if let Err(error) = shelf.in_time(watch.look(&crew.engine, &shelf)).await {
                warn!(%error, "could not check the promises");
            }
        }
        // After a long pause there is much to take away; recovery comes in between.
        if behind || round.is_multiple_of(600) {
            let gone = retention::sweep(&crew.engine, &shelf, retention::A_FEW).await;
            let gone = gone.inspect_err(|error| warn!(%error, "could not clean up history"));
            behind = gone.is_ok_and(|gone| gone >= retention::A_FEW);
        }
        round = round.wrapping_add(1);
        let jitter = crew.engine.settings.reap_every.mul_f64(1.0 + rand::random::<f64>() / 5.0);
        tokio::select! {
            () = crew.alive.cancelled() => return,
            () = tokio::time::sleep(jitter) => {}
        }
    }
}
