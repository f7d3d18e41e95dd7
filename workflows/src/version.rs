//! The rollout of versions: what may be asked of one, and the two workflows that do it.

mod canary;
mod deprecate;
mod promote;
mod publish;
mod retire;
mod rollback;
mod smoke;
mod stage;
mod tell;
mod throwaway;

pub use canary::{CanaryVersion, CanaryVersionInput};
pub use deprecate::DeprecateVersion;
pub use promote::PromoteVersion;
pub use publish::{PublishVersion, PublishVersionInput};
pub use retire::{RetireVersion, RetireVersionInput, Retirement, When};
pub use rollback::RollbackVersion;
pub use stage::StageVersion;

use serde::Deserialize;
use store::app_versions::AppVersion;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::action::{Subject, Visitor};

impl Subject for AppVersion {
    const KIND: &'static str = "version";

    fn actions<V: Visitor<AppVersion>>(visitor: &mut V) {
        visitor.action::<StageVersion>();
        visitor.action::<CanaryVersion>();
        visitor.action::<PublishVersion>();
        visitor.action::<RollbackVersion>();
        visitor.action::<DeprecateVersion>();
        visitor.action::<RetireVersion>();
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn owner(&self) -> (Uuid, Uuid) {
        AppVersion::owner(self)
    }

    fn state(&self) -> &'static str {
        self.status.as_str()
    }
}

/// The body of the actions that need nothing but a reason.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "The tests passed." }))]
pub struct MoveVersionInput {
    /// Kept with the version and in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::version_status::VersionStatus;

    use super::*;
    use crate::action::allowed_actions;

    #[test]
    fn the_register_offers_exactly_what_the_table_of_moves_allows() {
        for status in VersionStatus::ALL {
            let version = AppVersion {
                id: Uuid::nil(),
                app_id: Uuid::nil(),
                slug: "notes".to_owned(),
                owner_org_id: Uuid::nil(),
                owner_project_id: Uuid::nil(),
                version: "1.0.0".to_owned(),
                status,
                status_reason: None,
                evidence: None,
                manifest: serde_json::Value::Null,
                content_digest: String::new(),
                canary: None,
                canary_round: 0,
                registered_by: Uuid::nil(),
                created_at: DateTime::UNIX_EPOCH,
                updated_at: DateTime::UNIX_EPOCH,
            };
            let table: Vec<&str> =
                status.allowed_actions().into_iter().map(|action| action.as_str()).collect();
            assert_eq!(allowed_actions(&version), table, "{status}");
        }
    }
}
