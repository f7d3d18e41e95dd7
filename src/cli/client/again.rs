//! When the same is asked again: where the answer was lost on the way, or another stood in for the platform. What the platform
//! said stands, and whoever cannot be reached at all is not waited for.

use std::time::Duration;

use bytes::Bytes;
use domain::ErrorCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use tokio::time::sleep;

use super::{Client, refusal, unreachable};
use crate::failure::Failure;

/// Before a question is asked again.
pub(super) const QUESTION: [Duration; 1] = [Duration::from_millis(200)];
/// Before a change is asked for again, by the same key.
pub(super) const CHANGE: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// Nobody is told to wait for longer.
const LONGEST: Duration = Duration::from_secs(10);

impl Client {
    /// Asks, and again after each of these pauses while the answer is lost on the way. Who gets none learns whether it was
    /// lost before, too.
    pub(super) async fn ask(
        &self,
        pauses: &[Duration],
        request: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Heard, (Missed, bool)> {
        let (mut pauses, mut was_lost) = (pauses.iter(), false);
        loop {
            let missed = match self.ask_once(&request).await {
                Ok(bytes) => return Ok(Heard { bytes, again: was_lost }),
                Err(missed) => missed,
            };
            let Some(pause) = pauses.next().and_then(|usual| missed.pause(*usual, was_lost)) else {
                return Err((missed, was_lost));
            };
            sleep(pause).await;
            was_lost = true;
        }
    }

    async fn ask_once(&self, request: &impl Fn(&reqwest::Client) -> RequestBuilder) -> Result<Bytes, Missed> {
        let answer = self.send(request).await?;
        answer.bytes().await.map_err(|error| Missed::broken_off(&error))
    }
}

/// What came instead of an answer.
pub(super) struct Missed {
    pub failure: Failure,
    how: How,
}

enum How {
    /// The platform said no, or was not asked at all.
    Known,
    /// Nobody was there to hear it.
    Unheard,
    /// It may have been heard, and was waited for long enough.
    Silence,
    /// It may have been heard, and the same may be asked again; after so long, if that was told.
    Lost(Option<Duration>),
}

impl Missed {
    /// What happened to a request on its way.
    pub fn on_the_way(url: &str, error: &reqwest::Error) -> Missed {
        let how = match error {
            _ if error.is_builder() => How::Known,
            _ if error.is_connect() => How::Unheard,
            _ if error.is_timeout() => How::Silence,
            _ => How::Lost(None),
        };
        Missed { failure: unreachable(url, error), how }
    }

    /// What happened to an answer that had begun.
    pub fn broken_off(error: &reqwest::Error) -> Missed {
        let how = if error.is_timeout() { How::Silence } else { How::Lost(None) };
        Missed { failure: Failure::server("the answer broke off"), how }
    }

    /// An answer that is none of success.
    pub async fn refused(answer: Response) -> Missed {
        let (status, told) = (answer.status(), told_to_wait(answer.headers()));
        let failure = refusal(status, &answer.text().await.unwrap_or_default());
        let is_lost = match &failure.answer {
            Some(envelope) => envelope.code == ErrorCode::IdempotencyInProgress,
            // Not the platform's words, so a proxy's that did not get them.
            None => matches!(
                status,
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
            ),
        };
        Missed { failure, how: if is_lost { How::Lost(told) } else { How::Known } }
    }

    /// How long to wait before the same is asked again; nothing where that leads nowhere. A platform that was there a moment
    /// ago may come back.
    pub fn pause(&self, usual: Duration, was_lost: bool) -> Option<Duration> {
        match self.how {
            How::Lost(told) => Some(told.unwrap_or(usual).clamp(usual, LONGEST)),
            How::Unheard if was_lost => Some(usual),
            How::Unheard | How::Known | How::Silence => None,
        }
    }

    /// Of a change: that nobody knows whether it was made, where nobody does. `was_lost` says that it was asked for before.
    pub fn of_change(mut self, was_lost: bool) -> Failure {
        let is_unknown = match self.how {
            How::Known => false,
            How::Unheard => was_lost,
            How::Silence | How::Lost(_) => true,
        };
        if is_unknown {
            self.failure.message += "; whether it was done is not known: look before you ask again";
        }
        self.failure
    }
}

impl From<Failure> for Missed {
    fn from(failure: Failure) -> Missed {
        Missed { failure, how: How::Known }
    }
}

/// An answer whole.
pub(super) struct Heard {
    pub bytes: Bytes,
    /// It is the answer to asking again.
    pub again: bool,
}

impl Heard {
    /// A secret is told once. Where that was in the answer that got lost, nobody has it.
    pub fn with_its_secret(self) -> Result<Heard, Failure> {
        #[derive(Deserialize)]
        struct Told {
            secret_already_delivered: bool,
        }
        let told: Option<Told> = serde_json::from_slice(&self.bytes).ok();
        if self.again && told.is_some_and(|told| told.secret_already_delivered) {
            return Err(Failure::server(
                "it was done, but the answer with its secret was lost on the way, and the secret is told only once: \
                 run the command again for another",
            ));
        }
        Ok(self)
    }
}

fn told_to_wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
