//! An activity is one effect on the world: do, undo and observe on one screen.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fault::Fault;
use crate::retry::Retry;

/// One effect on the world. Its input names everything it creates, so `run` may be repeated and `undo` needs nothing
/// that `run` returned.
pub trait Activity: Serialize + Clone + Send + Sync + 'static {
    const NAME: &'static str;
    const RETRY: Retry = Retry::STANDARD;
    /// One try may take this long; past it the outcome counts as unknown.
    const TIMEOUT: Duration = Duration::from_secs(30);
    /// True where `undo` does something. It is noted durably before `run` begins.
    const UNDO: bool = false;
    type Env: Send + Sync + 'static;
    type Output: Serialize + DeserializeOwned + Send;

    fn run(&self, env: &Self::Env, call: &Call) -> impl Future<Output = Result<Self::Output, Fault>> + Send;

    /// Must be safe whether or not `run` ever happened.
    fn undo(&self, _env: &Self::Env, _call: &Call) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Looks at the world before a second try. `Done` answers the step without repeating it.
    fn observe(
        &self,
        _env: &Self::Env,
        _call: &Call,
    ) -> impl Future<Output = Result<Observed<Self::Output>, Fault>> + Send {
        async { Ok(Observed::Unknown) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed<T> {
    /// The earlier try took effect; this is what it gave.
    Done(T),
    /// Nothing of it is there.
    Absent,
    /// It cannot be told; the step repeats under the same idempotency key.
    Unknown,
}

/// What an activity may know of the call it is part of.
#[derive(Debug, Clone)]
pub struct Call {
    pub run: Uuid,
    /// Fences calls within one key: a receiver refuses an epoch lower than one it has seen.
    pub epoch: i64,
    pub attempt: i32,
    /// The same for every try of this step in this direction; hand it to the outside.
    pub idempotency_key: String,
    pub correlation_id: Arc<str>,
    pub trace_id: Option<Arc<str>>,
    /// The span that started the run.
    pub traceparent: Option<Arc<str>>,
    /// Ends when the operator pauses or cancels, the lease is lost or the process stops.
    pub cancelled: CancellationToken,
}

pub(crate) fn idempotency_key(run: Uuid, step: impl Display, undo: bool) -> String {
    format!("{run}/{step}/{}", if undo { "undo" } else { "do" })
}
