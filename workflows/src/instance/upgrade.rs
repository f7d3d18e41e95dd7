//! `instance.upgrade`: another version, which serves once it is healthy.

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

pub struct Upgrade;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "target_version": "1.1.0" }))]
pub struct UpgradeInstanceInput {
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub target_version: String,
    /// An artifact of that version to run instead of the one that was frozen for it.
    #[serde(default)]
    pub artifact_id: Option<Uuid>,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Action for Upgrade {
    type Subject = AppInstance;
    type Input = UpgradeInstanceInput;
    type Run = UpgradeInstance;

    const VERB: &'static str = "upgrade";
    const OPERATION: &'static str = "upgrade_app_instance";
    const SUMMARY: &'static str = "Move the instance to another version";
    const PERMISSION: Permission = Permission::AppsInstanceUpgrade;
    const REFUSES: &'static [ErrorCode] = CHANGE_REFUSES;

    fn is_legal(instance: &AppInstance) -> bool {
        instance.status().is_ok_and(|status| status == InstanceStatus::Running)
    }

    fn reason(input: &UpgradeInstanceInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        instance: &AppInstance,
        input: UpgradeInstanceInput,
        _: Requester,
    ) -> Result<UpgradeInstance, Refused> {
        let version = Some(input.target_version);
        begin_change(conn, instance, Way::Upgrade, version, input.artifact_id).await.map(UpgradeInstance)
    }

    fn told(instance: &AppInstance, run: &UpgradeInstance) -> Option<(EventType, Value)> {
        Some(change_told(instance, &run.0))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpgradeInstance(pub Shift);

impl Workflow for UpgradeInstance {
    const NAME: &'static str = "instance.upgrade";
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
        again::change::<Upgrade>(conn, self.0, by).await.map(UpgradeInstance)
    }
}
