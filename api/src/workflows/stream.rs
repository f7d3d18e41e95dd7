//! `GET …/workflows/{id}/stream`: a run as server-sent events. A `snapshot` of the whole run comes first; after that
//! each change is sent as the `step`s that differ, closed by the `run` itself, which carries the event id.
//!
//! A client that reconnects with the last id it saw gets a snapshot only if something has changed since. The stream
//! ends when the run is finished, the process stops, or the caller may no longer follow it.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use api_types::WorkflowRunDetail;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use domain::{ErrorCode, Scope};
use engine::RunState;
use engine::inspect::{Pulse, pulse};
use futures::stream::{self, Stream};
use serde::Serialize;
use serde_json::Value;
use store::node_tasks;
use tokio::time::sleep;
use uuid::Uuid;

use super::show::representation;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag;
use crate::params::Params;
use crate::pass::Pass;
use crate::path::RunId;
use crate::state::State;
use crate::wait::Watch;

const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that lost its stream should come back this soon.
const RECONNECT: Duration = Duration::from_secs(1);
/// A run that takes a thousand steps a second is shown ten times a second.
const GAP: Duration = Duration::from_millis(100);

pub(crate) fn stream() -> Endpoint {
    Endpoint::new("stream_workflow", "A run's changes as they happen", follow)
        .header(
            "Last-Event-ID",
            "The last event id seen; the snapshot is left out if nothing has changed since.",
        )
        .streams(
            &["snapshot", "step", "run"],
            "Events with a run or a step as JSON in `data`; comments as heartbeats.",
        )
        .refuses(&[ErrorCode::WorkflowNotFound])
}

async fn follow(
    Shared(state): Shared<State>,
    caller: Caller,
    RunId(id): RunId,
    headers: HeaderMap,
    params: Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    params.finish()?;
    let last_seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let (scope, pass) = (caller.scope, Pass::of(&state, caller, &headers));
    let follower = Follower::begin(state, pass, scope, id, last_seen).await?;
    let events = stream::unfold(follower, Follower::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("heartbeat")))
}

struct Follower {
    state: State,
    pass: Pass,
    scope: Scope,
    id: Uuid,
    watch: Watch,
    /// What the client knows.
    sent: WorkflowRunDetail,
    seen: Option<Seen>,
    ready: VecDeque<Event>,
}

impl Follower {
    async fn begin(
        state: State,
        pass: Pass,
        scope: Scope,
        id: Uuid,
        last_seen: Option<&str>,
    ) -> Result<Follower, ApiError> {
        let watch = Watch::over(&state.engine, id);
        let sent = read(&state, scope, id).await?;
        let event_id = event_id(&sent)?;
        let mut ready = VecDeque::new();
        if last_seen != Some(event_id.as_str()) {
            ready.push_back(event("snapshot", &sent)?.id(event_id).retry(RECONNECT));
        }
        Ok(Follower { state, pass, scope, id, watch, sent, seen: None, ready })
    }

    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((Ok(event), self));
            }
            if self.sent.run.finished_at.is_some() {
                return None;
            }
            let stopping = self.state.draining.clone();
            tokio::select! {
                () = stopping.cancelled() => return None,
                () = self.watch.changed() => {}
            }
            // The watch looks by itself far more often than the pass does.
            if !self.pass.holds().await {
                return None;
            }
            // A database that does not answer now may answer at the next look; the client need not know.
            if let Err(error) = self.catch_up().await {
                tracing::debug!(code = %error.code, "a stream missed one look at its run");
            }
        }
    }

    /// Prepares what the client does not know yet.
    async fn catch_up(&mut self) -> Result<(), ApiError> {
        let seen = look(&self.state, self.id).await?;
        if self.seen.as_ref() == Some(&seen) {
            return Ok(());
        }
        let now = read(&self.state, self.scope, self.id).await?;
        self.seen = Some(seen);
        if now == self.sent {
            return Ok(());
        }
        let known: HashMap<_, _> =
            self.sent.steps.iter().map(|step| ((&step.name, &step.key), step)).collect();
        for step in now.steps.iter().filter(|step| known.get(&(&step.name, &step.key)) != Some(step)) {
            self.ready.push_back(event("step", step)?);
        }
        self.ready.push_back(event("run", &now.run)?.id(event_id(&now)?));
        self.sent = now;
        sleep(GAP).await;
        Ok(())
    }
}

/// The run's pulse, and what nodes tell while it waits: that is no change of the run.
type Seen = (Option<Pulse>, Vec<(String, Value)>);

async fn look(state: &State, id: Uuid) -> Result<Seen, ApiError> {
    let mut tx = state.read().await?;
    let pulse = pulse(&mut tx, id).await?;
    let told = match &pulse {
        Some(pulse) if pulse.state == RunState::Waiting => node_tasks::progress_of(&mut tx, id).await?,
        _ => Vec::new(),
    };
    tx.rollback().await?;
    Ok((pulse, told))
}

async fn read(state: &State, scope: Scope, id: Uuid) -> Result<WorkflowRunDetail, ApiError> {
    let mut tx = state.read().await?;
    let detail = representation(state, &mut tx, scope, id).await?;
    tx.rollback().await?;
    Ok(detail)
}

/// The run's position and a digest of all it shows: equal ids mean that the client has missed nothing.
fn event_id(detail: &WorkflowRunDetail) -> Result<String, ApiError> {
    let bytes = serde_json::to_vec(detail).map_err(|error| ApiError::internal(&error))?;
    Ok(format!("{}-{}", detail.run.seq, etag::tag(&bytes).trim_matches('"')))
}

fn event(name: &str, data: &impl Serialize) -> Result<Event, ApiError> {
    Event::default().event(name).json_data(data).map_err(|error| ApiError::internal(&error))
}
