//! Staging: the version leaves draft. Its content and one digest per artifact are frozen from then on.

use domain::Permission;
use domain::version_status::VersionAction;
use sqlx::PgConnection;
use store::app_versions::AppVersion;

use super::{MoveVersionInput, PromoteVersion};
use crate::action::{Action, Refused, Requester};

pub struct StageVersion;

impl Action for StageVersion {
    type Subject = AppVersion;
    type Input = MoveVersionInput;
    type Run = PromoteVersion;

    const VERB: &'static str = "stage";
    const OPERATION: &'static str = "stage_version";
    const SUMMARY: &'static str = "Freeze a draft and make it ready to be rolled out";
    const PERMISSION: Permission = Permission::AppsVersionManage;

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Stage.leads(version.status).is_some()
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
        Ok(PromoteVersion::new(version, VersionAction::Stage, by))
    }
}
