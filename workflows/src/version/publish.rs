//! Publishing: every entitled project may deploy the version. Other active versions stay so unless told otherwise.

use domain::Permission;
use domain::version_status::VersionAction;
use serde::Deserialize;
use sqlx::PgConnection;
use store::app_versions::AppVersion;
use utoipa::ToSchema;

use super::PromoteVersion;
use crate::action::{Action, Refused, Requester};

pub struct PublishVersion;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "supersede": true, "reason": "A week without failures." }))]
pub struct PublishVersionInput {
    /// Kept with the version and in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    /// Deprecate the other active versions of the app in the same moment.
    #[serde(default)]
    pub supersede: bool,
}

impl Action for PublishVersion {
    type Subject = AppVersion;
    type Input = PublishVersionInput;
    type Run = PromoteVersion;

    const VERB: &'static str = "publish";
    const OPERATION: &'static str = "publish_version";
    const SUMMARY: &'static str = "Make a canary active: open to every entitled project";
    const PERMISSION: Permission = Permission::AppsVersionManage;

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Publish.leads(version.status).is_some()
    }

    fn reason(input: &PublishVersionInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        _: &mut PgConnection,
        version: &AppVersion,
        input: PublishVersionInput,
        by: Requester,
    ) -> Result<PromoteVersion, Refused> {
        let supersede = input.supersede;
        Ok(PromoteVersion { supersede, ..PromoteVersion::new(version, VersionAction::Publish, by) })
    }
}
