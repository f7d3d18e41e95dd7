//! Whose runs a request may touch: those of the project in its path, or, under `/admin`, everybody's.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use domain::ErrorCode;
use tracing::Span;
use uuid::Uuid;

use crate::error::ApiError;
use crate::router::{ADMIN, PROJECT};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// `None` under `/admin`.
    pub(crate) project: Option<Uuid>,
}

impl Scope {
    /// A run of another project is answered as if it did not exist.
    pub(crate) fn covers(&self, project: Uuid) -> bool {
        self.project.is_none_or(|mine| mine == project)
    }

    /// Where the caller reads a run; it stays on the side of the API that it came in by.
    pub(crate) fn href(&self, run: Uuid) -> String {
        match self.project {
            Some(project) => {
                format!("{}/workflows/{run}", PROJECT.replace("{project_id}", &project.to_string()))
            }
            None => format!("{ADMIN}/workflows/{run}"),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Scope {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Scope, ApiError> {
        let Some(text) = path_value(parts, state, "project_id").await? else {
            return Ok(Scope { project: None });
        };
        let project = text.parse().map_err(|_| ApiError::plain(ErrorCode::ProjectNotFound))?;
        if let Some(named) = parts.headers.get("x-project-id") {
            let named = named.to_str().ok().and_then(|text| text.parse::<Uuid>().ok());
            if named != Some(project) {
                return Err(ApiError::new(
                    ErrorCode::InvalidRequest,
                    "X-Project-ID differs from the project in the path.",
                ));
            }
        }
        Span::current().record("project_id", tracing::field::display(project));
        Ok(Scope { project: Some(project) })
    }
}

/// The `{id}` of a workflow route. Text that is no id names no run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunId(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for RunId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RunId, ApiError> {
        let text = path_value(parts, state, "id").await?.unwrap_or_default();
        text.parse().map(RunId).map_err(|_| ApiError::plain(ErrorCode::WorkflowNotFound))
    }
}

async fn path_value<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<Option<String>, ApiError> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|rejection| ApiError::new(ErrorCode::InvalidRequest, rejection.body_text()))?;
    Ok(params.iter().find(|(given, _)| *given == name).map(|(_, value)| value.to_owned()))
}
