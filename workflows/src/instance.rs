//! The lifecycle of an instance, one file per action.

mod again;
mod change;
pub(crate) mod debts;
pub mod decommission;
pub mod deploy;
mod explain;
pub mod reconcile;
mod retry;
mod rollback;
mod switch;
mod upgrade;

pub use change::Shift;
pub use explain::{Explained, explain};
pub use retry::{Retry, allowed_out_of_reach};
pub use rollback::{Rollback, RollbackInstance, RollbackInstanceInput};
pub use upgrade::{Upgrade, UpgradeInstance, UpgradeInstanceInput};

pub use activities::instance::public;

use std::str::FromStr;
use std::time::Duration;

use activities::Env;
use activities::instance::Way;
use domain::{ErrorCode, EventType, StatusReason, UnknownWord};
use engine::{Fault, Halt, Run};
use node_protocol::{Outcome, Output};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_instances::{self, AppInstance};
use store::deployment::{To, decide_change};
use store::resource_ledger::Holder;
use utoipa::ToSchema;
use uuid::Uuid;

use self::decommission::Decommission;
use crate::action::{Refused, Subject, Visitor};
use crate::told::Told;

impl Subject for AppInstance {
    const KIND: &'static str = "app_instance";

    fn actions<V: Visitor<AppInstance>>(visitor: &mut V) {
        visitor.action::<Upgrade>();
        visitor.action::<Rollback>();
        visitor.action::<Retry>();
        visitor.action::<Decommission>();
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn owner(&self) -> (Uuid, Uuid) {
        (self.org_id, self.project_id)
    }

    /// A word that only a newer release knows allows nothing here.
    fn state(&self) -> &'static str {
        self.status().map_or("unknown", domain::InstanceStatus::as_str)
    }
}

/// One active run per instance.
pub fn target(instance: Uuid) -> String {
    format!("{}:{instance}", AppInstance::KIND)
}

/// The body of the actions that need nothing but a reason.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "The experiment is over." }))]
pub struct OperateInstanceInput {
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// What a change of version may be refused with.
const CHANGE_REFUSES: &[ErrorCode] = &[
    ErrorCode::VersionNotFound,
    ErrorCode::ArtifactNotFound,
    ErrorCode::AccessCredentialNotFound,
    ErrorCode::EntitlementRequired,
    ErrorCode::PolicyDenied,
    ErrorCode::ArtifactUntrusted,
    ErrorCode::ArtifactNotDeployable,
    ErrorCode::PlacementUnsatisfiable,
];

/// Decides where the change leads and how, and starts a new generation for it.
async fn begin_change(
    conn: &mut PgConnection,
    instance: &AppInstance,
    way: Way,
    version: Option<String>,
    artifact_id: Option<Uuid>,
) -> Result<Shift, Refused> {
    let to = To { version, artifact_id, purpose: way.purpose() };
    let change = decide_change(conn, instance, &to).await?;
    let generation = app_instances::next_generation(conn, instance.id).await?;
    Ok(Shift {
        instance: instance.id,
        generation,
        way,
        version: change.release.version,
        artifact_id,
        strategy: change.strategy,
        pull: Uuid::now_v7(),
    })
}

/// Says beforehand whether the old version is stopped before the new one serves.
fn change_told(instance: &AppInstance, shift: &Shift) -> (EventType, Value) {
    let mut data = public(instance, shift.way.as_str());
    data["target_version"] = json!(shift.version);
    data["strategy"] = json!(shift.strategy);
    (shift.way.requested(), data)
}

/// A word that only a newer release knows cannot be read here.
fn word<T: FromStr<Err = UnknownWord>>(text: &str) -> sqlx::Result<T> {
    text.parse().map_err(|unknown: UnknownWord| sqlx::Error::Decode(Box::new(unknown)))
}

fn holder<'a>(instance: &AppInstance, told: &'a Told) -> Holder<'a> {
    Holder {
        org_id: instance.org_id,
        project_id: instance.project_id,
        instance_id: instance.id,
        run_id: told.run,
        correlation_id: &told.correlation_id,
    }
}

/// What the node answered. A failure, a refusal or silence turns the run back.
pub(crate) async fn answer(run: &mut Run<Env>, name: &'static str, within: Duration) -> Result<Output, Halt> {
    let (reason, message) = match run.wait_until(name, "", within).await? {
        Some(Outcome::Succeeded { output }) => return Ok(output),
        Some(Outcome::Failed { reason, message }) => (reason, message),
        Some(Outcome::Refused { refusal }) => {
            (StatusReason::TaskRejected, format!("the node refused the task: {refusal}"))
        }
        None => (StatusReason::NodeUnreachable, format!("the node did not answer within {within:?}")),
    };
    Err(run.fail(&Fault::terminal(reason.as_str(), message)).await)
}
