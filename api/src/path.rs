//! Ids in paths. Text that is no id names nothing, so it is answered as a thing that does not exist.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use domain::ErrorCode;
use uuid::Uuid;

use crate::error::ApiError;

/// The `{id}` of a route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id(Option<Uuid>);

impl Id {
    /// Of something that was just made.
    pub(crate) const fn of(id: Uuid) -> Id {
        Id(Some(id))
    }

    pub(crate) fn or(self, missing: ErrorCode) -> Result<Uuid, ApiError> {
        self.0.ok_or_else(|| ApiError::plain(missing))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::new(ErrorCode::InvalidRequest, rejection.body_text()))?;
        Ok(Id(value(&params, "id").and_then(|text| text.parse().ok())))
    }
}

/// The `{id}` of a workflow route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunId(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for RunId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RunId, ApiError> {
        Id::from_request_parts(parts, state).await?.or(ErrorCode::WorkflowNotFound).map(RunId)
    }
}

pub(crate) fn value<'a>(params: &'a RawPathParams, name: &str) -> Option<&'a str> {
    params.iter().find(|(given, _)| *given == name).map(|(_, value)| value)
}
