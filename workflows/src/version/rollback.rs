//! Rolling back: a canary returns to staged. Instances that run the version go on.

use domain::Permission;
use domain::version_status::VersionAction;
use sqlx::PgConnection;
use store::app_versions::AppVersion;

use super::{MoveVersionInput, PromoteVersion};
use crate::action::{Action, Refused, Requester};

pub struct RollbackVersion;

impl Action for RollbackVersion {
    type Subject = AppVersion;
    type Input = MoveVersionInput;
    type Run = PromoteVersion;

    const VERB: &'static str = "rollback";
    const OPERATION: &'static str = "rollback_version";
    const SUMMARY: &'static str = "Take a canary back to staged";
    const PERMISSION: Permission = Permission::AppsVersionManage;

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Rollback.leads(version.status).is_some()
    }

    fn reason(input: &MoveVersionInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        _: &mut PgConnection,
        version: &AppVersion,
        _: MoveVersionInput,
        by: Requester,
    ) -> Result<PromoteVersion, Refused> {
        Ok(PromoteVersion::new(version, VersionAction::Rollback, by))
    }
}
