//! Workflow runs over HTTP: list, show, stream, and what operators may ask of them.
//!
//! The same endpoints serve a project's runs and, under `/admin`, everybody's; the caller's scope is the difference.

mod bulk_retry;
mod list;
mod operate;
pub(crate) mod present;
mod show;
mod stream;

pub(crate) use bulk_retry::bulk_retry;
pub(crate) use list::{list, stuck};
pub(crate) use operate::{cancel, pause, resume, retry};
pub(crate) use show::show;
pub(crate) use stream::stream;

use api_types::WorkflowHandle;
use domain::{ErrorCode, Scope};
use engine::inspect::{RunFilter, RunView, runs};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::ApiError;
use crate::router::{ADMIN, PROJECT};

/// A run of another project is answered as if it did not exist.
fn covers(scope: Scope, project: Uuid) -> bool {
    scope.project().is_none_or(|mine| mine == project)
}

/// Where the caller reads a run; it stays on the side of the API that it came in by.
fn href(scope: Scope, run: Uuid) -> String {
    match scope.project() {
        Some(project) => {
            format!("{}/workflows/{run}", PROJECT.replace("{project_id}", &project.to_string()))
        }
        None => format!("{ADMIN}/workflows/{run}"),
    }
}

/// How an answer names the run that does its work.
pub(crate) async fn handle_of_run(
    conn: &mut PgConnection,
    scope: Scope,
    run: Uuid,
) -> Result<WorkflowHandle, ApiError> {
    Ok(present::handle_of(&present::run(find(conn, scope, run).await?), scope))
}

/// The run, if it exists and the caller's scope covers it.
pub(crate) async fn find(conn: &mut PgConnection, scope: Scope, id: Uuid) -> Result<RunView, ApiError> {
    let filter =
        RunFilter { ids: Some(vec![id]), project: scope.project(), limit: 1, ..RunFilter::default() };
    runs(conn, &filter).await?.pop().ok_or_else(|| ApiError::plain(ErrorCode::WorkflowNotFound))
}
