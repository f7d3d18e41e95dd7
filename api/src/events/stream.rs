//! Events as they happen. Each carries its number as the id, so a client that comes back with the last one it saw gets
//! every event after it once, also those that were told meanwhile.
//!
//! A number that nobody can resume from, because what follows it was cleaned away or was never told, is answered with a
//! `reset`: what comes after it is everything that is kept. The stream ends when the process stops, or when the caller may
//! no longer follow it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use domain::event::CloudEvent;
use futures::stream;
use serde_json::json;
use store::outbox::{self, Extent, Filter};

use super::watch::Watching;
use crate::error::ApiError;
use crate::pass::{self, Pass};
use crate::state::State;

const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that lost its stream should come back this soon.
const RECONNECT: Duration = Duration::from_secs(1);
/// How many events are read at once.
const READ: i64 = 100;

/// `cursor` is where a list ended, for those who go on from there.
pub(super) async fn follow(
    state: State,
    pass: Pass,
    filter: Filter,
    cursor: Option<i64>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let last_seen = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().to_owned());
    let watching = state.events.watch(&state, filter.project_id);
    let extent = extent(&state, &filter).await?;
    let begin = begin(last_seen.as_deref(), cursor, filter.since.is_some(), extent);
    let mut follower = Follower {
        filter: Filter { after: begin.after, limit: READ, ..filter },
        ready: VecDeque::from([Event::default().retry(RECONNECT).comment("")]),
        watching,
        pass,
        state,
    };
    if begin.reset {
        follower.ready.push_back(reset(begin.after));
    }
    let events = stream::unfold(follower, Follower::next);
    let answer = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("heartbeat"));
    Ok(answer.into_response())
}

#[derive(Debug, PartialEq, Eq)]
struct Begin {
    after: i64,
    reset: bool,
}

/// Where a stream begins.
fn begin(last_seen: Option<&str>, cursor: Option<i64>, since: bool, extent: Extent) -> Begin {
    let named = match last_seen {
        Some(id) => Some(id.parse().unwrap_or(-1)),
        None => cursor,
    };
    match named {
        Some(seen) if (extent.forgotten..=extent.last).contains(&seen) => Begin { after: seen, reset: false },
        Some(_) => Begin { after: extent.forgotten, reset: true },
        None if since => Begin { after: extent.forgotten, reset: false },
        None => Begin { after: extent.last, reset: false },
    }
}

struct Follower {
    state: State,
    pass: Pass,
    filter: Filter,
    watching: Watching,
    ready: VecDeque<Event>,
}

impl Follower {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            let stopping = self.state.draining.clone();
            let news = tokio::select! {
                () = stopping.cancelled() => return None,
                () = self.watching.beyond(self.filter.after) => true,
                () = tokio::time::sleep(pass::EVERY) => false,
            };
            if !self.pass.holds().await {
                return None;
            }
            if !news {
                continue;
            }
            // A database that does not answer now may answer at the next look; the client need not know.
            if let Err(error) = self.catch_up().await {
                tracing::debug!(code = %error.code, "a stream missed one look at its events");
                tokio::time::sleep(RECONNECT).await;
            }
        }
    }

    /// Prepares what the client does not know yet. What the filter leaves out counts as known.
    async fn catch_up(&mut self) -> Result<(), ApiError> {
        let mut tx = self.state.read().await?;
        let extent = outbox::extent(&mut tx, self.filter.project_id).await?;
        let events = outbox::told(&mut tx, &self.filter).await?;
        tx.rollback().await?;
        if extent.forgotten > self.filter.after {
            self.ready.push_back(reset(extent.forgotten));
        }
        for event in &events {
            self.ready.push_back(shown(event)?);
        }
        self.filter.after = match events.last() {
            Some(last) if events.len() as i64 == READ => last.seq(),
            _ => extent.last,
        };
        Ok(())
    }
}

async fn extent(state: &State, filter: &Filter) -> Result<Extent, ApiError> {
    let mut tx = state.read().await?;
    let extent = outbox::extent(&mut tx, filter.project_id).await?;
    tx.rollback().await?;
    Ok(extent)
}

fn shown(event: &CloudEvent) -> Result<Event, ApiError> {
    let sent = Event::default().event("event").id(event.seq().to_string()).json_data(event);
    sent.map_err(|error| ApiError::internal(&error))
}

/// What the client knows may be stale: everything after this number follows.
fn reset(after: i64) -> Event {
    Event::default().event("reset").id(after.to_string()).data(json!({ "resumed_after": after }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_on_where_it_ended_or_says_that_it_cannot() {
        let extent = Extent { last: 9, forgotten: 4 };
        let at = |after| Begin { after, reset: false };
        let anew = Begin { after: 4, reset: true };
        for (last_seen, cursor, since, begins) in [
            (None, None, false, at(9)),
            (None, None, true, at(4)),
            (None, Some(6), false, at(6)),
            (Some("7"), Some(6), true, at(7)),
            (Some("00000000000000000007"), None, false, at(7)),
            (Some("4"), None, false, at(4)),
            // Cleaned away, never told (the database is older than the client), or no number at all.
            (Some("3"), None, false, Begin { ..anew }),
            (Some("10"), None, false, Begin { ..anew }),
            (Some("x"), None, false, Begin { ..anew }),
        ] {
            assert_eq!(begin(last_seen, cursor, since, extent), begins, "{last_seen:?} {cursor:?}");
        }
    }
}
