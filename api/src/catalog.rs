//! The catalog: apps, their versions, and how versions are rolled out.

mod apps;
mod explain;
mod gates;
mod version_actions;
mod versions;

pub(crate) use apps::{list, show};
pub(crate) use explain::explain;
pub(crate) use gates::gates;
pub(crate) use version_actions::VersionKey;
pub(crate) use versions::{list as list_versions, show as show_version, shown};

use domain::{Demand, ErrorCode, Permission, Refusal, authorize};
use sqlx::PgConnection;
use store::apps::App;
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// Whose view of the catalog is asked for.
#[derive(Clone, Copy)]
struct View {
    project: Uuid,
    /// Only what the project may deploy.
    entitled: bool,
}

impl View {
    /// The project comes with `?project_id=`; the caller must be able to see it, and its catalog.
    async fn read(state: &State, caller: &Caller, params: &mut Params) -> Result<Option<View>, ApiError> {
        let project: Option<Uuid> = params.parsed("project_id", "a project's id");
        let entitled: Option<bool> = params.parsed("entitled", "true or false");
        if entitled == Some(true) && project.is_none() {
            params.problem("project_id", "must say whose entitlements are meant");
        }
        let Some(project) = project else { return Ok(None) };
        let invisible = || ApiError::plain(ErrorCode::ProjectNotFound);
        let scope = state.places.project(state, project).await?.ok_or_else(invisible)?;
        let demand = Demand { key: Permission::AppsCatalogRead, humans_only: false };
        authorize(caller.principal(), demand, scope).map_err(|refusal| match refusal {
            Refusal::InsufficientPermissions => ApiError::plain(ErrorCode::InsufficientPermissions)
                .with("permission", Permission::AppsCatalogRead.as_str()),
            Refusal::Invisible | Refusal::AdminRequired => invisible(),
        })?;
        Ok(Some(View { project, entitled: entitled.unwrap_or_default() }))
    }
}

async fn app(conn: &mut PgConnection, slug: &str) -> Result<App, ApiError> {
    store::apps::find(conn, slug).await?.ok_or_else(|| ApiError::plain(ErrorCode::AppNotFound))
}
