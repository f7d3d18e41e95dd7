//! What was used and what it costs. These paths name no project: a query, a header or a resource of it does, and the
//! caller must hold the key there.

mod bill;
mod budget;
mod credit;
mod events;
mod ledger;
mod report;
mod usage;

pub(crate) use bill::bill;
pub(crate) use budget::{budget, set_budget};
pub(crate) use credit::create_credit;
pub(crate) use events::usage_events;
pub(crate) use ledger::{balance, ledger};
pub(crate) use usage::usage;

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use domain::{Demand, ErrorCode, Permission, Refusal, authorize};
use sqlx::PgConnection;
use store::{app_instances, meters, open_windows, server};
use uuid::Uuid;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

/// Whose usage is asked for, as it was said.
struct Whose {
    project: Option<Uuid>,
    instance: Option<Uuid>,
}

impl Whose {
    /// By a project or an instance of it.
    fn read(params: &mut Params, headers: &HeaderMap) -> Whose {
        let instance = params.parsed("app_instance_id", "a UUID");
        Whose::named(params, headers, instance)
    }

    /// By a project alone.
    fn project(params: &mut Params, headers: &HeaderMap) -> Whose {
        Whose::named(params, headers, None)
    }

    /// A project that is named twice must be the same.
    fn named(params: &mut Params, headers: &HeaderMap, instance: Option<Uuid>) -> Whose {
        let project: Option<Uuid> = params.parsed("project_id", "a UUID");
        let header =
            headers.get("x-project-id").map(|value| value.to_str().unwrap_or_default().parse::<Uuid>());
        let project = match (project, header) {
            (_, Some(Err(_))) => {
                params.problem("X-Project-ID", "must be a UUID");
                project
            }
            (Some(asked), Some(Ok(named))) if asked != named => {
                params.problem("project_id", "differs from X-Project-ID");
                project
            }
            (asked, named) => asked.or(named.and_then(Result::ok)),
        };
        if project.is_none() && instance.is_none() {
            params.problem("project_id", "is required, as a parameter or as X-Project-ID");
        }
        Whose { project, instance }
    }

    /// The organization and the project, if the caller may read its usage. What is not theirs does not exist.
    async fn place(
        &self,
        state: &State,
        conn: &mut PgConnection,
        caller: &Caller,
    ) -> Result<(Uuid, Uuid), ApiError> {
        let of_instance = match self.instance {
            Some(id) => app_instances::find(conn, id).await?.map(|instance| instance.project_id),
            None => None,
        };
        let missing = match self.project {
            Some(_) => ErrorCode::ProjectNotFound,
            None => ErrorCode::AppInstanceNotFound,
        };
        let Some(project) = self.project.or(of_instance) else { return Err(ApiError::plain(missing)) };
        let scope = state.places.project(state, project).await?.ok_or_else(|| ApiError::plain(missing))?;
        let demand = Demand { key: Permission::BillingUsageRead, humans_only: false };
        authorize(caller.principal(), demand, scope).map_err(|refusal| match refusal {
            Refusal::Invisible | Refusal::AdminRequired => ApiError::plain(missing),
            Refusal::InsufficientPermissions => {
                let refused = ApiError::plain(ErrorCode::InsufficientPermissions);
                refused.with("permission", demand.key.as_str())
            }
        })?;
        if self.instance.is_some() && of_instance != Some(project) {
            return Err(ApiError::plain(ErrorCode::AppInstanceNotFound));
        }
        scope.org().zip(scope.project()).ok_or_else(|| ApiError::plain(missing))
    }
}

/// Everything before is rated: the oldest window that is not, the first second that a meter has not written down yet, or now.
async fn rated_until(conn: &mut PgConnection, project: Uuid) -> Result<DateTime<Utc>, ApiError> {
    let told = open_windows::oldest(conn, project).await?;
    let counted = meters::unwritten_since(conn, project).await?;
    let now = server::now(conn).await?;
    Ok([told, counted].into_iter().flatten().fold(now, Ord::min))
}
