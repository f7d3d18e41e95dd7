//! What can be asked of an artifact and a durable run then does: promote, deprecate, retire.

mod deprecate;
mod promote;
mod retire;
mod tell;

pub use deprecate::{DeprecateArtifact, Deprecation};
pub use promote::{PromoteArtifact, PromoteArtifactInput, Promotion};
pub use retire::{RetireArtifact, RetireArtifactInput, Withdrawal};

use domain::artifact::Lifecycle;
use engine::Fault;
use serde::Deserialize;
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::action::{Action, Subject, Visitor};

impl Subject for AppArtifact {
    const KIND: &'static str = "artifact";

    fn actions<V: Visitor<AppArtifact>>(visitor: &mut V) {
        visitor.action::<PromoteArtifact>();
        visitor.action::<DeprecateArtifact>();
        visitor.action::<RetireArtifact>();
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn owner(&self) -> (Uuid, Uuid) {
        AppArtifact::owner(self)
    }

    /// A word that only a newer release knows allows nothing here.
    fn state(&self) -> &'static str {
        self.lifecycle().map_or("unknown", Lifecycle::as_str)
    }
}

/// The body of the actions that need nothing but a reason.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "Superseded by 1.1.0." }))]
pub struct MoveArtifactInput {
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// Whether the table of legal moves lets the action begin.
fn is_legal<A: Action<Subject = AppArtifact>>(artifact: &AppArtifact) -> bool {
    artifact.lifecycle().is_ok_and(|state| state.allowed().contains(&A::VERB))
}

/// Held still until the transaction of the step ends.
async fn locked(conn: &mut PgConnection, id: Uuid) -> Result<AppArtifact, Fault> {
    let found = app_artifacts::find_locked(conn, id).await?;
    found.ok_or_else(|| Fault::terminal("artifact_not_found", "the artifact is gone"))
}
