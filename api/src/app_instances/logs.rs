//! `GET P/app-instances/{id}/logs`: what the instance wrote last. The node is asked there and then and nothing is kept, so
//! a log is as private as the container it is from. With `follow` the node is asked again and again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use api_types::InstanceLogs;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::manifest::RuntimeProfile;
use domain::{ErrorCode, InstanceStatus, LogLine, NodeStatus, compose};
use futures::stream;
use node_protocol::{Output, ReadLogs, Task};
use sqlx::PgConnection;
use store::app_instance_artifacts::Standing;
use store::app_instance_releases;
use store::app_instances::AppInstance;
use store::nodes::Node;
use tokio::time::sleep;
use uuid::Uuid;

use super::{found, node_of};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, switch, text_as, text_like, whole_number};
use crate::error::ApiError;
use crate::json::Json;
use crate::node_question::{Question, silent};
use crate::params::Params;
use crate::pass::Pass;
use crate::path::Id;
use crate::state::State;

use utoipa::openapi::schema::KnownFormat;

/// Unless said otherwise.
const LINES: u32 = 100;
/// Between two questions of one who follows.
const PAUSE: Duration = Duration::from_secs(1);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What members are called.
const MEMBER: &str = "^[a-z0-9][a-z0-9_-]{0,62}$";

pub(crate) fn logs() -> Endpoint {
    Endpoint::new("get_app_instance_logs", "What the instance wrote last", read)
        .query(
            "tail",
            whole_number(1, ReadLogs::MOST_LINES.into()),
            "At most so many lines; 100 unless said otherwise.",
        )
        .query(
            "member",
            text_like(MEMBER),
            "Which part of the instance; the one that serves unless said otherwise.",
        )
        .query("since", text_as(KnownFormat::DateTime), "Only what was written after this time.")
        .query(
            "follow",
            switch(),
            "Go on telling what it writes, as server-sent events, until the caller leaves.",
        )
        .answers::<InstanceLogs>(200, "The last lines, oldest first, as the instance's node has them.")
        .or_streams(&["line"])
        .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::StateConflict, ErrorCode::UpstreamError])
}

async fn read(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, ApiError> {
    let (wanted, follow) = (Wanted::of(&mut params), params.parsed("follow", "true or false"));
    params.finish()?;
    let instance = id.or(ErrorCode::AppInstanceNotFound)?;
    let first = wanted.ask(&state, &caller, instance).await?;
    if follow == Some(true) {
        let pass = Pass::of(&state, caller.clone(), &headers);
        return Ok(Follower::after(state, (caller, pass), instance, wanted, first).stream());
    }
    Ok(Json(first).into_response())
}

#[derive(Clone)]
struct Wanted {
    member: Option<String>,
    tail: u32,
    since: Option<DateTime<Utc>>,
}

impl Wanted {
    fn of(params: &mut Params) -> Wanted {
        let rule = format!("a number from 1 to {}", ReadLogs::MOST_LINES);
        let tail = params.parsed("tail", &rule).unwrap_or(LINES);
        if !(1..=ReadLogs::MOST_LINES).contains(&tail) {
            params.problem("tail", format!("must be {rule}"));
        }
        let member = params.text("member");
        if member.as_deref().is_some_and(|member| !is_member(member)) {
            params.problem("member", "must be the name of a member, such as main");
        }
        let since = params.parsed("since", "an RFC 3339 time such as 2026-01-31T12:00:00Z");
        Wanted { member, tail, since }
    }

    async fn ask(&self, state: &State, caller: &Caller, id: Uuid) -> Result<InstanceLogs, ApiError> {
        let mut tx = state.read().await?;
        let instance = found(&mut tx, caller, Id::of(id)).await?;
        let node = node_of(&mut tx, &instance).await?;
        let member = match &self.member {
            Some(member) => member.clone(),
            None => serving(&mut tx, id).await?,
        };
        tx.rollback().await?;
        let node = standing(&instance, node)?;
        let task = Task::DiagLogs(ReadLogs { instance_id: id, member, tail: self.tail, since: self.since });
        let correlation_id = caller.context.correlation_id.to_string();
        match (Question { instance, node, task, correlation_id }).answer(state).await? {
            Output::Logs { lines, truncated } => Ok(InstanceLogs { lines, truncated }),
            _ => Err(ApiError::new(ErrorCode::UpstreamError, "The node answered something else.")),
        }
    }
}

/// The part that people reach.
async fn serving(conn: &mut PgConnection, instance: Uuid) -> Result<String, ApiError> {
    let mut release = app_instance_releases::find(conn, instance, Standing::Serving).await?;
    if release.is_none() {
        release = app_instance_releases::find(conn, instance, Standing::Target).await?;
    }
    let profile: Option<RuntimeProfile> =
        release.and_then(|release| serde_json::from_value(release.profile).ok());
    Ok(profile.map_or_else(|| compose::MAIN.to_owned(), |profile| compose::member_of(&profile, None)))
}

fn is_member(text: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63 && text.starts_with(word) && text.chars().all(|c| word(c) || c == '-' || c == '_')
}

/// The node that can be asked. Nothing was ever written before an instance was placed, and nothing is left after its end.
fn standing(instance: &AppInstance, node: Option<Node>) -> Result<Node, ApiError> {
    let status = instance.status()?;
    let gone = status == InstanceStatus::Requested || status.is_terminal();
    let Some(node) = node.filter(|_| !gone) else {
        let message = format!("The instance is {status}: no node has anything that it wrote.");
        return Err(ApiError::new(ErrorCode::StateConflict, message).with("state", status.as_str()));
    };
    if node.status()? == NodeStatus::Unavailable { Err(silent(&node)) } else { Ok(node) }
}

/// Somebody who goes on listening.
struct Follower {
    state: State,
    caller: Caller,
    pass: Pass,
    instance: Uuid,
    wanted: Wanted,
    ready: VecDeque<LogLine>,
}

impl Follower {
    fn after(
        state: State,
        (caller, pass): (Caller, Pass),
        instance: Uuid,
        wanted: Wanted,
        first: InstanceLogs,
    ) -> Follower {
        let mut follower = Follower { state, caller, pass, instance, wanted, ready: VecDeque::new() };
        follower.wanted.tail = ReadLogs::MOST_LINES;
        follower.take(first);
        follower
    }

    /// What is asked for next begins where this ends.
    fn take(&mut self, told: InstanceLogs) {
        self.wanted.since = told.lines.last().map(|line| line.at).or(self.wanted.since);
        self.ready.extend(told.lines);
    }

    fn stream(self) -> Response {
        let events = stream::unfold(self, Follower::next);
        Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("heartbeat")).into_response()
    }

    /// Ends with the instance, with the process, or when the caller may not hear more. A node that is away for a while is asked
    /// again.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower)> {
        loop {
            if !self.pass.holds().await {
                return None;
            }
            if let Some(line) = self.ready.pop_front() {
                let event = Event::default().event("line").id(line.at.to_rfc3339()).json_data(&line).ok()?;
                return Some((Ok(event), self));
            }
            let stopping = self.state.draining.clone();
            tokio::select! {
                () = stopping.cancelled() => return None,
                () = sleep(PAUSE) => {}
            }
            match self.wanted.ask(&self.state, &self.caller, self.instance).await {
                Ok(told) => self.take(told),
                Err(error) if error.code == ErrorCode::StateConflict => return None,
                Err(error) => tracing::debug!(code = %error.code, "a log could not be followed for a moment"),
            }
        }
    }
}
