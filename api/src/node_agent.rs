//! `/internal/v1/nodes`: what nodes say and ask. A node enrols once with its token; from then on it proves its own key and
//! speaks for itself alone.
//!
//! These routes take no idempotency keys and write no audit entries: a task has one result and a report has a number, and
//! nothing here is anybody's decision.

mod enroll;
mod heartbeat;
mod result;
mod token;
mod wait;
mod watch;
mod wellbeing;

pub(crate) use enroll::enroll;
pub(crate) use heartbeat::heartbeat;
pub(crate) use result::{progress, result};
pub(crate) use token::token;
pub(crate) use wait::wait;
pub(crate) use watch::TaskWatch;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use chrono::TimeDelta;
use domain::ErrorCode;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;
use uuid::Uuid;
use workflows::SignerFault;

use crate::body;
use crate::error::ApiError;
use crate::path;

/// How long a node may be silent about a task before it is handed out again.
const LEASE: TimeDelta = TimeDelta::seconds(60);

/// How often a node should report.
const HEARTBEAT_SECONDS: u32 = 10;

/// A body that comes without an idempotency key.
pub(crate) struct Said<T>(pub(crate) T);

impl<T: DeserializeOwned + ToSchema, S: Send + Sync> FromRequest<S> for Said<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Said<T>, ApiError> {
        body::read(request).await.map(|(_, said)| Said(said))
    }
}

/// The `{task_id}` of a route.
pub(crate) struct TaskId(Uuid);

impl<S: Send + Sync> FromRequestParts<S> for TaskId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<TaskId, ApiError> {
        let missing = || ApiError::plain(ErrorCode::NodeTaskNotFound);
        let params = RawPathParams::from_request_parts(parts, state).await.map_err(|_| missing())?;
        let id = path::value(&params, "task_id").and_then(|text| text.parse().ok());
        id.map(TaskId).ok_or_else(missing)
    }
}

impl From<SignerFault> for ApiError {
    fn from(fault: SignerFault) -> ApiError {
        match fault {
            SignerFault::Database(error) => error.into(),
            other => ApiError::internal(&other),
        }
    }
}
