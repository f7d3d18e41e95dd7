//! Events on NATS `JetStream`: one subject per project, each event once and in its order, however often it is sent.
//!
//! `Nats-Msg-Id` is the event's id, and the server drops repetitions of it for a while. Beyond that every message says after
//! which message of its subject it may come, so what a process sends that slept or lost its connection is refused by the
//! server itself.

use std::fmt;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectOptions, ServerAddr};
use domain::Secret;
use domain::event::CloudEvent;
use uuid::Uuid;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// As long as the platform keeps events itself.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
const REPETITIONS_KNOWN_FOR: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub struct NatsSettings {
    pub servers: Vec<ServerAddr>,
    pub token: Option<Secret<String>>,
    /// The stream's name; one that is missing is made.
    pub stream: String,
    /// What the subjects begin with; the project follows.
    pub subject: String,
}

/// An address may hold a password.
impl fmt::Debug for NatsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.len();
        write!(
            f,
            "NatsSettings {{ servers: {servers}, stream: {:?}, subject: {:?} }}",
            self.stream, self.subject
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NatsFault {
    /// Somebody else has sent meanwhile; whoever looks again sees what.
    #[error("the stream has gone on without this message")]
    Overtaken,
    #[error("{0}")]
    Away(String),
    /// What is there was not written by us.
    #[error("the last message of {0} is no event of ours")]
    Foreign(String),
    #[error("the event cannot be written: {0}")]
    Unwritable(String),
}

impl NatsFault {
    /// Whether nobody's events can be passed on; else those of other projects can.
    pub fn is_everybodys(&self) -> bool {
        matches!(self, NatsFault::Away(_))
    }
}

/// How far a project's subject goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of its last event.
    pub event: i64,
    /// The number of its last message in the stream; 0 where there is none.
    pub message: u64,
}

#[derive(Clone)]
pub struct EventStream {
    context: Context,
    stream: Stream,
    subject: String,
}

impl EventStream {
    pub async fn open(settings: &NatsSettings) -> Result<EventStream, NatsFault> {
        let mut options =
            ConnectOptions::new().name("gpuaas").connection_timeout(PATIENCE).request_timeout(Some(PATIENCE));
        if let Some(token) = &settings.token {
            options = options.token(token.expose().clone());
        }
        let client = options.connect(settings.servers.as_slice()).await.map_err(away)?;
        let mut context = jetstream::new(client);
        context.set_timeout(PATIENCE);
        let wanted = Config {
            name: settings.stream.clone(),
            subjects: vec![format!("{}.>", settings.subject)],
            max_age: KEPT,
            duplicate_window: REPETITIONS_KNOWN_FOR,
            ..Config::default()
        };
        let stream = context.get_or_create_stream(wanted).await.map_err(away)?;
        Ok(EventStream { context, stream, subject: settings.subject.clone() })
    }

    /// When it was made, in nanoseconds: one that was lost and made again is another.
    pub async fn made(&self) -> Result<i64, NatsFault> {
        let info = self.stream.get_info().await.map_err(away)?;
        i64::try_from(info.created.unix_timestamp_nanos()).map_err(away)
    }

    /// Read from the stream itself: only it knows what became of a message that was never answered.
    pub async fn last(&self, project: Uuid) -> Result<Place, NatsFault> {
        let subject = self.subject_of(project);
        match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(last) => {
                let event: CloudEvent =
                    serde_json::from_slice(&last.payload).map_err(|_| NatsFault::Foreign(subject))?;
                Ok(Place { event: event.seq(), message: last.sequence })
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(Place::default()),
            Err(error) => Err(away(error)),
        }
    }

    /// Adds an event to what was there; answers the number of its message.
    pub async fn send(&self, project: Uuid, event: &CloudEvent, after: u64) -> Result<u64, NatsFault> {
        let body = serde_json::to_vec(event).map_err(|error| NatsFault::Unwritable(error.to_string()))?;
        let message = PublishMessage::build()
            .payload(body.into())
            .header("Content-Type", "application/cloudevents+json")
            .message_id(event.id.to_string())
            .expected_last_subject_sequence(after);
        let sent = self.context.send_publish(self.subject_of(project), message).await.map_err(away)?;
        match sent.await {
            Ok(answer) => Ok(answer.sequence),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Err(NatsFault::Overtaken),
            Err(error) => Err(away(error)),
        }
    }

    fn subject_of(&self, project: Uuid) -> String {
        match project.is_nil() {
            true => format!("{}.platform", self.subject),
            false => format!("{}.{project}", self.subject),
        }
    }
}

fn away(error: impl std::error::Error) -> NatsFault {
    NatsFault::Away(error.to_string())
}
