//! A request that changes something. What it owes besides its effect comes with it: the transaction, the audit entry,
//! and, where the caller named an idempotency key, the first answer, all of which commit together or not at all.
//!
//! A handler that takes a [`Mutation`] cannot answer before [`Mutation::commit`]; one that fails or is dropped leaves
//! nothing behind and the key free. A request that was answered before never reaches its handler: the extractor
//! answers it again.

mod answer;
mod key;
mod work;

pub(crate) use answer::Answer;
pub(crate) use work::Leftover;

use axum::extract::{FromRequest, Request};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, redact::redacted};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use store::audit::{self, NewEntry};
use store::idempotency::{self, Recorded, Slot};
use uuid::Uuid;

use self::work::Work;
use crate::body::{self, ReadBody};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::state::State;

pub(crate) struct Mutation<T> {
    pub(crate) caller: Caller,
    pub(crate) body: T,
    pub(crate) tx: Work,
    first: Option<First>,
    state: State,
}

/// The key this request is the first to use.
struct First {
    slot: Slot,
    body_hash: Vec<u8>,
}

/// What the audit log tells of a change.
#[derive(Default)]
pub(crate) struct Change {
    target: String,
    org_id: Option<Uuid>,
    project_id: Option<Uuid>,
    before: Option<Value>,
    after: Option<Value>,
    reason: Option<String>,
}

impl Change {
    /// `kind:id`.
    pub(crate) fn of(kind: &str, id: impl std::fmt::Display) -> Change {
        Change { target: format!("{kind}:{id}"), ..Change::default() }
    }

    /// Whose the target is, so that its project finds the entry although the path named no project. The nil id is the
    /// platform's own.
    pub(crate) fn owned_by(
        mut self,
        org: impl Into<Option<Uuid>>,
        project: impl Into<Option<Uuid>>,
    ) -> Change {
        self.org_id = org.into().filter(|org| !org.is_nil());
        self.project_id = project.into().filter(|project| !project.is_nil());
        self
    }

    pub(crate) fn from(mut self, before: &impl Serialize) -> Change {
        self.before = serde_json::to_value(before).ok().map(redacted);
        self
    }

    pub(crate) fn to(mut self, after: &impl Serialize) -> Change {
        self.after = serde_json::to_value(after).ok().map(redacted);
        self
    }

    pub(crate) fn because(mut self, reason: Option<String>) -> Change {
        self.reason = reason;
        self
    }
}

impl<T> Mutation<T> {
    /// Makes it true without an entry in the audit log: what was said, not what was decided.
    pub(crate) async fn heard(self, answer: Answer) -> Result<Response, ApiError> {
        self.settle(answer).await
    }

    /// Writes what the change owes and makes it true.
    pub(crate) async fn commit(self, change: Change, answer: Answer) -> Result<Response, ApiError> {
        self.commit_each(vec![change], answer).await
    }

    /// The same for a change of several things, each of which has an entry of its own.
    pub(crate) async fn commit_each(
        mut self,
        changes: Vec<Change>,
        answer: Answer,
    ) -> Result<Response, ApiError> {
        for change in changes {
            let asked = self.caller.entry();
            let entry = NewEntry {
                org_id: asked.org_id.or(change.org_id),
                project_id: asked.project_id.or(change.project_id),
                target: change.target,
                before: change.before,
                after: change.after,
                reason: change.reason,
                ..asked
            };
            audit::insert(&mut self.tx, &entry).await?;
        }
        self.settle(answer).await
    }

    async fn settle(mut self, answer: Answer) -> Result<Response, ApiError> {
        if let Some(First { slot, body_hash }) = &self.first {
            let recorded = answer.recorded(body_hash.clone())?;
            idempotency::record(&mut self.tx, slot, &recorded).await?;
        }
        self.tx.commit().await?;
        self.state.identity.distrust();
        self.state.hints.written();
        Ok(answer.into_response())
    }

    /// Takes back what the handler did. Nothing happened, so nothing is recorded and the key stays free.
    pub(crate) async fn abandon(self) -> Result<(), ApiError> {
        Ok(self.tx.rollback().await?)
    }
}

impl<T: ReadBody> FromRequest<State> for Mutation<T> {
    /// A refusal, or the answer that was given before.
    type Rejection = Response;

    async fn from_request(request: Request, state: &State) -> Result<Mutation<T>, Response> {
        let caller = request.extensions().get::<Caller>().cloned();
        let caller =
            caller.ok_or_else(|| ApiError::internal(&"a handler without the gate").into_response())?;
        let leftover = request.extensions().get::<Leftover>().cloned().unwrap_or_default();
        let slot = slot(&request, &caller).map_err(ApiError::into_response)?;
        // The body is read to its end before a connection is taken, so a slow caller holds none.
        let (bytes, body) = T::read(request).await.map_err(ApiError::into_response)?;
        let tx = state.write().await.map_err(|error| ApiError::from(error).into_response())?;
        let mut tx = Work::new(tx, leftover);
        let first = match slot {
            None => None,
            Some(slot) => Some(first_use(&mut tx, slot, Sha256::digest(&bytes).to_vec()).await?),
        };
        Ok(Mutation { caller, body, tx, first, state: state.clone() })
    }
}

/// The same request again, unless it was answered before. For handlers that look at the world outside before they open a
/// transaction: whoever asks again gets the first answer, whatever the world has come to.
pub(crate) async fn unanswered(
    request: Request,
    caller: &Caller,
    state: &State,
) -> Result<Request, Response> {
    let Some(slot) = slot(&request, caller).map_err(ApiError::into_response)? else { return Ok(request) };
    let (bytes, request) = body::copy(request).await.map_err(ApiError::into_response)?;
    let find = async {
        let mut tx = state.read().await?;
        let found = idempotency::find(&mut tx, &slot).await?;
        tx.rollback().await?;
        Ok(found)
    };
    let recorded = find.await.map_err(|error: sqlx::Error| ApiError::from(error).into_response())?;
    match recorded {
        Some(recorded) => Err(answered(recorded, &Sha256::digest(&bytes))),
        None => Ok(request),
    }
}

fn slot(request: &Request, caller: &Caller) -> Result<Option<Slot>, ApiError> {
    let Some(key) = key::of(request.headers())? else { return Ok(None) };
    Ok(Some(Slot {
        principal_id: caller.principal().id,
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        key,
    }))
}

/// Whoever gets the lock either is first or sees the first answer: both were committed before the lock came free.
async fn first_use(conn: &mut PgConnection, slot: Slot, body_hash: Vec<u8>) -> Result<First, Response> {
    let trouble = |error: sqlx::Error| ApiError::from(error).into_response();
    if !idempotency::try_lock(conn, &slot).await.map_err(trouble)? {
        return Err(ApiError::plain(ErrorCode::IdempotencyInProgress).retry_after(1).into_response());
    }
    match idempotency::find(conn, &slot).await.map_err(trouble)? {
        None => Ok(First { slot, body_hash }),
        Some(recorded) => Err(answered(recorded, &body_hash)),
    }
}

/// The first answer again, for the same body.
fn answered(recorded: Recorded, body_hash: &[u8]) -> Response {
    if recorded.body_hash != body_hash {
        return ApiError::plain(ErrorCode::IdempotencyKeyReused).into_response();
    }
    let mut answer = Answer::replay(recorded).into_response();
    answer.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    answer
}
