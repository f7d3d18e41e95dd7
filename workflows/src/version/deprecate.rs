//! Deprecating: existing instances go on and may still be rolled back to the version; there are no new ones.

use domain::Permission;
use domain::version_status::VersionAction;
use sqlx::PgConnection;
use store::app_versions::AppVersion;

use super::{MoveVersionInput, PromoteVersion};
use crate::action::{Action, Refused, Requester};

pub struct DeprecateVersion;

impl Action for DeprecateVersion {
    type Subject = AppVersion;
    type Input = MoveVersionInput;
    type Run = PromoteVersion;

    const VERB: &'static str = "deprecate";
    const OPERATION: &'static str = "deprecate_version";
    const SUMMARY: &'static str = "Take no new instances of a version";
    const PERMISSION: Permission = Permission::AppsVersionManage;

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Deprecate.leads(version.status).is_some()
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
        Ok(PromoteVersion::new(version, VersionAction::Deprecate, by))
    }
}
