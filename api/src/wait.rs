//! Waiting for a run without holding a connection: `?wait=30s` and the stream both follow a run through `Watch`.

use std::time::Duration;

use engine::inspect::{Pulse, pulse};
use engine::{Engine, RunChange};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// The longest `?wait=` a caller may ask for.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// How a wait is written, as the API document says it.
pub(crate) const PATTERN: &str = "^([0-9]{1,4}ms|[0-5]?[0-9]s|60s|[01]m)$";

/// Runs driven by other processes change silently, so waiting also looks by itself this often.
const FLOOR: Duration = Duration::from_millis(250);

/// The `?wait=` of a change that has no other parameter. It is read before the body, so that a query nobody understands is
/// refused even where the answer was given before.
pub(crate) struct Wait(pub(crate) Option<Duration>);

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Wait, ApiError> {
        let mut params = Params::from_request_parts(parts, state).await?;
        let wait = asked(&mut params);
        params.finish()?;
        Ok(Wait(wait))
    }
}

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
    // No more digits than `PATTERN` has.
    let (digits, unit) = match unit {
        "ms" => (4, Duration::from_millis(1)),
        "s" => (2, Duration::from_secs(1)),
        "m" => (1, Duration::from_secs(60)),
        _ => return None,
    };
    let number = number.parse().ok().filter(|_| number.len() <= digits)?;
    unit.checked_mul(number)
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
