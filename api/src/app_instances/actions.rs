//! `P/app-instances/{id}/…`: how the API finds and shows an instance that is acted on.

use api_types::{AppInstance, AppInstanceWithRun, WorkflowHandle};
use domain::ErrorCode;
use sqlx::PgConnection;
use store::app_instances as table;

use super::{offered, out_of_reach, own, shown};
use crate::action::Resource;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Id;
use crate::router::PROJECT;

impl Resource for table::AppInstance {
    const PLACE: &'static str = PROJECT;
    const PATH: &'static str = "/app-instances/{id}";
    const MISSING: ErrorCode = ErrorCode::AppInstanceNotFound;
    type Key = Id;
    type Shown = AppInstance;
    type Accepted = AppInstanceWithRun;

    async fn find_locked(
        conn: &mut PgConnection,
        caller: &Caller,
        key: &Id,
    ) -> Result<Option<table::AppInstance>, ApiError> {
        let instance = table::find_locked(conn, key.or(Self::MISSING)?).await?;
        Ok(own(instance, caller).ok())
    }

    async fn shown(&self, conn: &mut PgConnection, _: &Caller) -> Result<AppInstance, ApiError> {
        shown(conn, self.clone()).await
    }

    async fn offered(&self, conn: &mut PgConnection) -> Result<Vec<&'static str>, ApiError> {
        let lost = out_of_reach(conn, std::slice::from_ref(self)).await?;
        offered(conn, self, lost.contains(&self.id)).await
    }

    fn accepted(instance: AppInstance, workflow: WorkflowHandle) -> AppInstanceWithRun {
        AppInstanceWithRun { instance, workflow }
    }
}
