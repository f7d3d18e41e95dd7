//! Waiting for a run without holding a connection: `?wait=30s` and the stream both follow a run through `Watch`.

use std::time::Duration;

use engine::inspect::{Pulse, pulse};
use engine::{Engine, RunChange};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// The longest `?wait=` a caller may ask for.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// How a wait is written, as the API document says it.
pub(crate) const PATTERN: &str = "^([0-9]{1,4}ms|[0-5]?[0-9]s|60s|[01]m)$";

/// Runs driven by other processes change silently, so waiting also looks by itself this often.
const FLOOR: Duration = Duration::from_millis(250);

/// How long the caller wants its answer held back: `30s`, `1500ms`, `1m`; absent means not at all.
pub(crate) fn asked(params: &mut Params) -> Option<Duration> {
    let text = params.text("wait")?;
    let wait = parse(&text).filter(|wait| *wait <= LONGEST);
    if wait.is_none() {
        params.problem("wait", format!("must be a duration such as 30s, of at most {}s", LONGEST.as_secs()));
    }
    wait
}

fn parse(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

/// Resolves whenever a run may have changed.
pub(crate) struct Watch {
    run: Uuid,
    changes: Receiver<RunChange>,
}

impl Watch {
    /// Subscribe before reading the run: a change between the two is then seen, not missed.
    pub(crate) fn over(engine: &Engine, run: Uuid) -> Watch {
        Watch { run, changes: engine.changes() }
    }

    /// Woken only when the run comes to rest or ends, not by every step.
    fn over_rests(engine: &Engine, run: Uuid) -> Watch {
        Watch { run, changes: engine.rests() }
    }

    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            () = hinted(&mut self.changes, self.run) => {}
            () = sleep(FLOOR) => {}
        }
    }
}

async fn hinted(changes: &mut Receiver<RunChange>, run: Uuid) {
    loop {
        match changes.recv().await {
            Ok(change) if change.run == run => return,
            Ok(_) => {}
            // Hints were lost; one of them may have been ours.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending::<()>().await,
        }
    }
}

/// Waits until the run settles, the time is up or the process stops. Answers whether it settled.
pub(crate) async fn until_settled(state: &State, run: Uuid, wait: Duration) -> Result<bool, ApiError> {
    let deadline = Instant::now() + wait;
    let mut watch = Watch::over_rests(&state.engine, run);
    loop {
        if look(state, run).await?.is_none_or(|pulse| pulse.state.is_settled()) {
            return Ok(true);
        }
        tokio::select! {
            waited = timeout_at(deadline, watch.changed()) => if waited.is_err() { return Ok(false) },
            () = state.draining.cancelled() => return Ok(false),
        }
    }
}

/// One look at the run, on a connection that goes back at once.
pub(crate) async fn look(state: &State, run: Uuid) -> Result<Option<Pulse>, ApiError> {
    let mut tx = state.read().await?;
    let seen = pulse(&mut tx, run).await?;
    tx.rollback().await?;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(parse("30s"), Some(Duration::from_secs(30)));
        assert_eq!(parse("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(parse("1m"), Some(Duration::from_secs(60)));
        for text in ["", "30", "s", "-1s", "1.5s", "30 s", "1h", "99999999999999999999s"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
