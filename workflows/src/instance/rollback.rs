//! `instance.rollback`: back to what ran before, or to an earlier version. What the node still has needs no registry.

use activities::Env;
use activities::instance::Way;
use domain::{ErrorCode, EventType, InstanceStatus, Permission};
use engine::{Asker, Halt, NotAgain, OnExhausted, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
use store::app_instances::AppInstance;
use tracing::Span;
use utoipa::ToSchema;
use uuid::Uuid;

use super::change::{PLAN, Shift};
use super::{CHANGE_REFUSES, again, begin_change, change_told};
use crate::action::{Action, Refused, Requester};

pub struct Rollback;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "target_version": "1.0.0" }))]
pub struct RollbackInstanceInput {
    /// The last good version before the present one, unless given.
    #[serde(default)]
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub target_version: Option<String>,
    /// An artifact of that version to run instead of the one that was frozen for it.
    #[serde(default)]
    pub artifact_id: Option<Uuid>,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Action for Rollback {
    type Subject = AppInstance;
    type Input = RollbackInstanceInput;
    type Run = RollbackInstance;

    const VERB: &'static str = "rollback";
    const OPERATION: &'static str = "rollback_app_instance";
    const SUMMARY: &'static str = "Return the instance to what ran before";
    const PERMISSION: Permission = Permission::AppsInstanceRollback;
    const REFUSES: &'static [ErrorCode] = CHANGE_REFUSES;

    fn is_legal(instance: &AppInstance) -> bool {
        instance.status().is_ok_and(|status| status == InstanceStatus::Running)
    }

    fn reason(input: &RollbackInstanceInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        instance: &AppInstance,
        input: RollbackInstanceInput,
        _: Requester,
    ) -> Result<RollbackInstance, Refused> {
        let version = input.target_version;
        begin_change(conn, instance, Way::Rollback, version, input.artifact_id).await.map(RollbackInstance)
    }

    fn told(instance: &AppInstance, run: &RollbackInstance) -> Option<(EventType, Value)> {
        Some(change_told(instance, &run.0))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RollbackInstance(pub Shift);

impl Workflow for RollbackInstance {
    const NAME: &'static str = "instance.rollback";
    const PLAN: &'static [PlannedStep] = PLAN;
    const ON_EXHAUSTED: OnExhausted = OnExhausted::Unwind;
    type Env = Env;

    async fn span(&self, env: &Env) -> Span {
        activities::instance::span(env, self.0.instance).await
    }

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        self.0.run(run).await
    }

    async fn again(self, conn: &mut PgConnection, by: &Asker) -> Result<Self, NotAgain> {
        again::change::<Rollback>(conn, self.0, by).await.map(RollbackInstance)
    }
}
